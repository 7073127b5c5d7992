"""The paper's tables, figures and claims, reproduced."""

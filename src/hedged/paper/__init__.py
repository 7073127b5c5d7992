"""The paper's tables, figures and claims, reproduced.

    catalogue      every table and figure by name; a figure is the module named like it
    exhibits       what a table or figure is: the models it needs, and how it is made of them
    tables, table  the tables of trained models, and how a table is measured
    claims         what the text says in passing
    recipe, shelf, workers    how models are trained, kept and measured
    page           all results on one page

Only the command line imports this package.
"""

"""The databases that rows are kept in: one module for each database.

Every module here whose name does not start with an underscore is imported when a store is opened by its address
(`hedged.search.open_store`), which registers its stores. A new database is a new module.
"""

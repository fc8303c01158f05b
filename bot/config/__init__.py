"""Configuration: what may be written (`model`), how it is read (`load`), who answers (`choose_model`).

This package imports nothing by itself, so that the command line can name it without paying for pydantic.
"""

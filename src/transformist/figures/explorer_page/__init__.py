"""The explorer: a page in which a transformer works on a string of the reader's own."""

from transformist.figures.explorer_page.page import ExplorerPage, explorer

__all__ = ["ExplorerPage", "explorer"]

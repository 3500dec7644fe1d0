"""The frame of the report page: head, style, body. Nothing is loaded from elsewhere."""

from .rendering import as_html, render, style


def page(title: str, body: str) -> str:
    """A whole HTML document; ``body`` is HTML."""
    return str(render("page.html", title=title, style=style(), body=as_html(body))) + "\n"

"""One HTML page of runs, from the templates beside; the one place of jinja2."""

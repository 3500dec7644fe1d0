"""What a reader of a picture sees, and whether it is legible."""

from itertools import combinations


def visible_texts(figure):
    """All texts that a reader sees, placed."""
    from matplotlib.text import Text

    figure.draw_without_rendering()
    unseen = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())  # some axes go down
        for tick in axis.get_major_ticks():
            if not low <= tick.get_loc() <= high:
                unseen.add(tick.label1)
    texts = figure.findobj(lambda artist: isinstance(artist, Text) and artist not in unseen)
    return [text for text in texts if text.get_visible() and text.get_text().strip()]


def check_layout(figure):
    """All texts lie inside the picture and none on another."""
    texts = visible_texts(figure)
    page = figure.bbox.padded(1)
    boxes = {}
    for text in texts:
        box = text.get_window_extent()
        assert page.x0 <= box.x0 and box.x1 <= page.x1, text.get_text()
        assert page.y0 <= box.y0 and box.y1 <= page.y1, text.get_text()
        assert text.get_fontsize() >= 8, text.get_text()
        if text.get_rotation() in (0, 90):  # the box of slanted text holds corners without ink
            boxes[text] = box
    for (a, first), (b, second) in combinations(boxes.items(), 2):
        width = min(first.x1, second.x1) - max(first.x0, second.x0)
        height = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert width <= 1 or height <= 1, f"{a.get_text()!r} lies on {b.get_text()!r}"
    return [text.get_text() for text in texts]

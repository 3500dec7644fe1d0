"""What the processes of test_rows do; apart, so that they start without pytest."""

from fairseq_eisl.common.rows import append_row


def append_many(path, process, count, barrier):
    """Append ``count`` rows, once all processes are ready."""
    barrier.wait()
    for i in range(count):
        append_row(path, {"process": process, "i": i, f"only{process}": i})

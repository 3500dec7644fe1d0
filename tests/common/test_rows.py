import multiprocessing
import os
import stat

import pytest

from fairseq_eisl.common.rows import append_row, read_rows, select

from .append_rows import append_many

PROCESSES, ROWS = 4, 25


def test_processes_lose_no_rows(tmp_path):
    path = str(tmp_path / "rows.csv")
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES + 1)
    workers = [
        context.Process(target=append_many, args=(path, p, ROWS, barrier)) for p in range(PROCESSES)
    ]
    for worker in workers:
        worker.start()
    barrier.wait(timeout=60)
    seen = 0
    while any(worker.is_alive() for worker in workers):
        if os.path.exists(path):  # a reader never meets a part of a file
            now = len(read_rows(path))
            assert now >= seen
            seen = now
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    rows = read_rows(path)
    assert len(rows) == PROCESSES * ROWS
    assert {(int(r["process"]), int(r["i"])) for r in rows} == {
        (p, i) for p in range(PROCESSES) for i in range(ROWS)
    }
    assert all(r[f"only{r['process']}"] == r["i"] for r in rows)
    assert os.listdir(tmp_path) == ["rows.csv"]  # neither locks nor parts


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "rows.csv")


def test_new_columns_extend_old_rows(path):
    append_row(path, {"a": 1, "s": 2, "b": None})
    append_row(path, {"c": 0.5, "s": 3, "a": "x"})
    assert read_rows(path) == [
        {"a": "1", "s": "2", "b": "", "c": ""},
        {"a": "x", "s": "3", "b": "", "c": "0.5"},
    ]
    with open(path, encoding="utf-8", newline="") as f:
        assert f.read() == "a,s,b,c\n1,2,,\nx,3,,0.5\n"


@pytest.mark.parametrize(
    "text", ["0.10", "007", "nan", " x ", "1e5", 'a,"b"', "a\nb\r\nc", "é 猫", ""]
)
def test_text_comes_back_as_it_was(path, text):
    for _ in range(2):  # the second append reads and writes the first
        append_row(path, {"value": text, "other": "1"})
    assert [row["value"] for row in read_rows(path)] == [text, text]


def test_an_empty_file_is_a_new_one(path):
    open(path, "w").close()
    append_row(path, {"a": 1})
    assert read_rows(path) == [{"a": "1"}]


def test_missing_folders_are_made(tmp_path):
    path = str(tmp_path / "results" / "multi30k" / "rows.csv")
    append_row(path, {"a": 1})
    assert len(read_rows(path)) == 1


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path):
    target, link = tmp_path / "real.csv", tmp_path / "link.csv"
    append_row(str(target), {"a": 1})
    target.chmod(0o640)
    link.symlink_to(target)
    append_row(str(link), {"a": 2})
    assert link.is_symlink() and len(read_rows(str(target))) == 2
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_failed_write_keeps_the_old_rows(path, monkeypatch):
    append_row(path, {"a": 1})

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        append_row(path, {"a": 2})
    monkeypatch.undo()
    assert read_rows(path) == [{"a": "1"}]
    assert os.listdir(os.path.dirname(path)) == ["rows.csv"]
    append_row(path, {"a": 3})  # the lock is free


def test_a_lock_left_by_a_killed_process_is_no_obstacle(path):
    open(path + ".lock", "w").close()
    append_row(path, {"a": 1})
    assert os.listdir(os.path.dirname(path)) == ["rows.csv"]


@pytest.mark.parametrize(
    "content, message",
    [
        ("", "empty"),
        ("a,b\n1,2,3\n", "line 2 has 3 cells, the header 2"),
        ("a,b\n1,2\n1\n", "line 3 has 1 cells"),
        ("a,b,a\n1,2,3\n", "column a occurs twice"),
        ('a\n"x\n', "no CSV table"),
    ],
)
def test_broken_tables_are_refused_and_left_alone(path, content, message):
    with open(path, "w") as f:
        f.write(content)
    with pytest.raises(ValueError, match=f"rows.csv: .*{message}"):
        read_rows(path)
    if content:
        with pytest.raises(ValueError, match=message):
            append_row(path, {"a": 1})
        with open(path) as f:
            assert f.read() == content


@pytest.mark.parametrize("row", [{}, {"": 1}, {" ": 1}, {1: 1}])
def test_rows_need_names(path, row):
    with pytest.raises(ValueError, match="column"):
        append_row(path, row)
    assert not os.path.exists(path)


def test_devices_are_not_replaced():
    with pytest.raises(ValueError, match="not a regular file"):
        append_row(os.devnull, {"a": 1})
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_select_names_what_there_is():
    rows = [{"seed": "1", "x": "a"}, {"seed": "2", "x": "b"}, {"seed": "2", "x": "c"}]
    assert [r["x"] for r in select(rows, {"seed": "2"})] == ["b", "c"]
    assert select(rows, {}) == rows
    with pytest.raises(ValueError, match="no row has seed=3; there is 1, 2"):
        select(rows, {"seed": "3"})
    with pytest.raises(ValueError, match="no column sed; there is seed, x"):
        select(rows, {"sed": "1"})


@pytest.mark.parametrize(
    "content",
    [
        "my notes\nthat matter\n",
        "item,amount\ntea,3\n",
        "date,amount\n2024-01-01,3\n",
        '{"system": "CE"}\n',
        "one line without an end",
        "system bleu\nCE 3\n",
        "\ufeffitem;amount\n",
        "bleu\n",
        "system,price\nCE,3\n",
        "system\nbleu\n",
    ],
)
def test_a_file_that_holds_no_such_rows_stays_as_it_is(path, content):
    with open(path, "w", encoding="utf-8") as f:
        f.write(content)
    with pytest.raises(ValueError, match="rows.csv: "):
        append_row(path, {"system": "CE", "bleu": "3", "date": "today"})
    with open(path, encoding="utf-8") as f:
        assert f.read() == content


def test_rows_may_begin_with_a_byte_order_mark_and_lack_the_last_newline(path):
    with open(path, "w", encoding="utf-8") as f:
        f.write("\ufeffsystem,bleu\r\nCE,3")
    append_row(path, {"system": "EISL", "bleu": 4})
    assert [row["bleu"] for row in read_rows(path)] == ["3", "4"]


def test_an_empty_file_becomes_one_of_rows(path):
    open(path, "w").close()
    append_row(path, {"a": 1})
    assert read_rows(path) == [{"a": "1"}]

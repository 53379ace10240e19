from idiolect.report.view.names import LONGEST, isolated


def test_a_name_stands_by_itself():
    assert isolated("north") == "\u2068north\u2069"
    assert isolated("a\u202eb\u2066c\u2069\0\n d") == "\u2068abc d\u2069"
    assert len(isolated("x" * 10_000)) == LONGEST + 2
    assert isolated(" ") == "\u2068(no name)\u2069"

from idiolect.report.html.words import Section, told_by


def test_what_a_page_tells(tmp_path):
    page = (
        "# A *toy* \\| more\n\n- protocol: as-written\n- source: A paper: Table 1\n- made by: `idiolect x`\n\n"
        "The models of the last round are shown.\n\n## one \\< two\n\n> **About these data**\n>\n> - a note\n"
        "> - Known leak: this.\n\n<details><summary>Settings</summary>\n\n- data: mnist (test = 0.2)\n"
        "- mine: fedavg (rate = 0.1)\n- local (rate = 0.1)\n- 20 rounds\n\n</details>\n\n## Made with\n\n"
        "- date: 2026-01-02\n- Python: 3.11.7\n"
    )
    (tmp_path / "report.md").write_text(page)
    words = told_by(tmp_path / "report.md", "else")
    assert (words.title, words.source, words.protocol, words.command) == (
        *("A *toy* | more", "A paper: Table 1", "as-written", "idiolect x"),
    )
    assert words.made_with == (("date", "2026-01-02"), ("Python", "3.11.7"))
    section = words.of(1)[0]
    assert (section.title, section.notes, section.audit) == ("one < two", ("a note",), ("Known leak: this.",))
    assert section.chosen == "The models of the last round are shown."
    assert section.settings == (
        *(
            ("data", "mnist (test = 0.2)"),
            ("mine", "fedavg (rate = 0.1)"),
            ("", "local (rate = 0.1)"),
            ("", "20 rounds"),
        ),
    )
    assert (section.method_of("mine"), section.method_of("local")) == ("fedavg", "")


def test_no_page_tells_nothing(tmp_path):
    words = told_by(tmp_path / "report.md", "else")
    assert (words.title, words.of(2)) == ("else", [Section(), Section()])

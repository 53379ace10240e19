"""What mkdocs calls: pages that are made of the package join those of docs/, and links find their files."""

import posixpath
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from docs.make import cards, commands, drawn, fields, gallery, notation, notebook, public, repository  # noqa: E402


def made() -> dict[str, str]:
    """Every page that is made of the package: text by path in the site."""
    return {**cards.pages(), **public.pages(), **commands.pages(), **notebook.pages()}


FILLED = {"Cards": cards.navigation, "Commands": commands.navigation, "Python": public.navigation}
"""The empty entries of the navigation, and what fills them."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the empty entries of the navigation: the methods' cards, the commands, the packages."""
    for section in config.nav or []:
        for part in next(iter(section.values())):
            if isinstance(part, dict) and (name := next(iter(part))) in FILLED and not part[name]:
                part[name] = FILLED[name]()
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and the files of the repository that pages point to."""
    pages = {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages()}
    for uri, text in made().items():
        files.append(File.generated(config, uri, content=text))
        pages[f"docs/{uri}"] = text
    for uri, page in gallery.pages().items():
        files.append(File.generated(config, uri, content=page))
    for uri, image in notebook.images().items():
        files.append(File.generated(config, uri, content=image))
    for uri, content in repository.pointed_to(pages).items():
        if isinstance(content, str) and uri.startswith(f"{repository.FOLDER}/results/"):
            content, images = drawn.drawn(content)
            for path, image in images.items():
                files.append(File.generated(config, posixpath.join(posixpath.dirname(uri), path), content=image))
        given: dict[str, Any] = {"content": content} if isinstance(content, str) else {"abs_src_path": str(content)}
        files.append(File.generated(config, uri, **given))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Fill in what is made for this page, typeset its equations, and let its links find their files."""
    uri = page.file.src_uri
    if uri == "experiment-file.md":
        markdown = fields.filled(markdown)
    if uri == "verdicts.md":
        markdown = fields.with_rule(markdown)
    if uri == "gallery.md":
        markdown = gallery.linked(markdown)
    if uri == "methods.md":
        markdown = cards.linked(markdown)
    return repository.relinked(notation.typeset(markdown), uri, {file.src_uri for file in files})

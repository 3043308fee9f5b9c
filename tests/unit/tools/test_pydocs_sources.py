"""Where pydocs reads: files of the standard library and of packages, and the docstrings in them, statically."""

from pathlib import Path

from tools.pydocs import extract, sources
from tools.pydocs.sources import SourceFile


def test_objects_are_found_statically(tmp_path):
    path = tmp_path / "m.py"
    path.write_text(
        '"""About the module."""\n'
        "raise SystemExit('imported')\n"
        "def f():\n    '''F.'''\n    def inner():\n        '''Inner.'''\n"
        "def _private():\n    '''P.'''\n"
        "class C:\n    '''C.'''\n    def method(self):\n        '''M.'''\n    def __init__(self):\n        '''I.'''\n"
        "class _Hidden:\n    def method(self):\n        '''H.'''\n"
        "if True:\n    async def g():\n        '''G.'''\nelse:\n    def g():\n        '''Other G.'''\n"
        "try:\n    import x\nexcept ImportError:\n    def h():\n        '''H.'''\n"
    )
    found = [(entry.name, entry.docstring) for entry in extract.documented(SourceFile("m", path))]
    assert found == [
        ("", "About the module."),
        ("f", "F."),
        ("C", "C."),
        ("C.method", "M."),
        ("g", "G."),
        ("h", "H."),
    ]


def test_docstrings_added_to_compiled_objects_are_found(tmp_path):
    path = tmp_path / "docs.py"
    path.write_text(
        "add_newdoc('np.core', 'array', 'Make one.')\n"
        "add_newdoc('np.core', 'ndarray', ('sort', 'Sort it.'))\n"
        "add_newdoc('np.core', 'ndarray', [('size', 'Its size.')])\n"
        "add_newdoc('np.core', 'ndarray', ('__len__', 'Hidden.'))\n"
        "add_newdoc('gamma', 'The gamma function.')\n"
        "add_newdoc('ArrayLike', 'a.b.c', 'Another function of that name.')\n"
        "add_newdoc('np.core', name, f'Computed {text}.')\n"
    )
    found = [tuple(entry) for entry in extract.documented(SourceFile("np.special._docs", path))]
    assert found == [
        ("np.core", "array", "Make one."),
        ("np.core", "ndarray.sort", "Sort it."),
        ("np.core", "ndarray.size", "Its size."),
        ("np.special", "gamma", "The gamma function."),
    ]


def test_a_file_that_cannot_be_parsed_has_no_objects(tmp_path):
    (tmp_path / "m.py").write_text('"""Doc."""\nprint "two"\n')
    assert extract.documented(SourceFile("m", tmp_path / "m.py")) == []


def install(folder: Path, name: str, files: dict[str, str]) -> None:
    """What pip leaves behind: files and a dist-info folder that lists them."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    info = folder / f"{name}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in files))


def test_a_packages_own_files_are_read_in_order_of_names(tmp_path, monkeypatch):
    names = [
        "lib/z.py",
        "lib/__init__.py",
        "lib/a.py",
        "lib/tests/test_a.py",
        "lib/_vendor/x.py",
        "lib/bad-name.py",
        "lib/x.so",
    ]
    install(tmp_path, "lib", dict.fromkeys(names, ""))
    (tmp_path / "lib/stray.py").write_text("")  # not the package's
    monkeypatch.syspath_prepend(tmp_path)
    assert [source.module for source in sources.package("lib")] == ["lib", "lib.a", "lib.z"]
    assert sources.version("lib") == "1.2"


def test_the_standard_library_is_found():
    modules = [source.module for source in sources.standard_library()]
    assert modules == sorted(modules)
    assert {"json", "json.decoder", "heapq"} <= set(modules)
    assert not [name for name in modules if name.startswith(("test", "site-packages", "_sysconfigdata"))]

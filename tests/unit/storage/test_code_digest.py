"""Code is no trigger for Snakemake, so a change of behaviour is declared: this asks for the declaration."""

import ast
import shutil

import pytest
import yaml

from encore import objectives
from encore.datasets import kinds
from encore.errors import EncoreError
from encore.plan.planner import all_stages, impl
from encore.storage import code_digest
from encore.storage.code_digest import HERE, PACKAGE, Code


def test_the_code_behind_the_stages_is_the_recorded_one():
    changed = HERE.changed(code_digest.read_record())
    about = "\n".join(f"{module}: behind {', '.join(stages)}" for module, stages in changed.items())
    assert not changed, (
        f"code behind these stages has changed since it was recorded. Where results can change, raise `impl` of the "
        f"stage (stages.yaml, or the objective's class); then record it with `make digests`:\n{about}"
    )


def test_every_stage_of_this_version_is_recorded():
    """Those of a new objective, which has no row in the page of objectives, may be."""
    page, recorded = (PACKAGE.parents[1] / "docs/objectives.md").read_text(), code_digest.read_record()["stages"]
    variants = [stage for stage in all_stages() if stage.startswith(("pretrain.", "prepare.", "count_pairs."))]
    own = {stage for stage in variants if f"| `{stage.partition('.')[2]}` |" not in page}
    assert [stage for stage in recorded if stage not in own] == [stage for stage in all_stages() if stage not in own]


# In a version with a line more in each of these files: stages that are named, and stages that are not.
PLANTED = {
    # Ids of documents: far from every program, and behind all that reads a run or a collection.
    "encore.storage.document_ids": (
        {"encode", "search", "finetune", "pretrain.ict", "rerank", "fuse", "evaluate"},
        {"fetch_checkpoint", "report"},
    ),
    "encore.storage.files": (set(all_stages()), set()),
    "encore.objectives.parts.stop_words": (
        {"pretrain.costa", "pretrain.prop", "prepare.bprop"},
        {"pretrain.mlm", "encode"},
    ),
    "encore.retrieval.fusion": ({"fuse", "tune_fusion"}, {"pretrain.mlm", "encode", "tokens"}),
    "encode.py": ({"encode"}, {"search", "tokens"}),
}
REMARKED = "encore.storage.manifest"


def copied(folder):
    """Another version, alike so far."""
    version = Code(folder / "src/encore")
    skipped = shutil.ignore_patterns("__pycache__", "program")
    shutil.copytree(PACKAGE, version.package, ignore=skipped)
    shutil.copytree(HERE.programs, version.programs, ignore=skipped)
    return version


def test_a_library_that_was_read_ahead_has_the_same_digests_and_an_edited_program_another(tmp_path):
    read_ahead = copied(tmp_path)
    read_ahead.read_library()
    program = read_ahead.programs / "encode.py"
    program.write_text(program.read_text() + "\nADDED = 1\n")
    for stage in ("pretrain.mlm", "collection.beir", "search"):
        assert read_ahead.digest(stage) == HERE.digest(stage)
    assert read_ahead.digest("encode") == Code(read_ahead.package).digest("encode") != HERE.digest("encode")


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """What is said of another version: those lines, a remark in one more module, and a new objective."""
    version = copied(tmp_path_factory.mktemp("version"))
    for name, line in (dict.fromkeys(PLANTED, "PLANTED = 1") | {REMARKED: "# said"}).items():
        with version._path(name).open("a") as file:
            file.write(f"\n{line}\n")
    (version.package / "objectives/planted.py").write_text("OBJECTIVE = None\n")
    return version.changed(HERE.record(all_stages()))


@pytest.mark.parametrize("module", PLANTED)
def test_a_change_in_a_far_module_names_every_stage_that_rests_on_it(changed, module):
    named, others = PLANTED[module]
    assert named <= set(changed[module])
    assert not others & set(changed[module])


def test_a_remark_and_a_new_objective_name_nothing(changed):
    assert REMARKED in HERE.modules("encode")
    assert changed.keys() == PLANTED.keys()


def test_an_import_inside_a_function_counts():
    """Programs import torch's users late, so that ``--help`` is quick."""
    assert "encore.retrieval.encode" in HERE.modules("encode")
    assert "    from encore.retrieval.encode" in (HERE.programs / "encode.py").read_text()


def test_an_import_for_type_checkers_does_not_count():
    """Kinds of figures name the plan in annotations; the program that draws them never loads it."""
    assert "encore.products.figures.coverage" in HERE.modules("draw")
    assert "    from encore.plan.plan" in (HERE.package / "products/figures/coverage.py").read_text()
    assert "encore.plan.plan" not in HERE.modules("draw")


def test_claims_are_judged_without_the_planner():
    """An edit of how jobs are planned does not change how claims on runs are judged."""
    assert "encore.products.claims.judging" in HERE.modules("claims")
    assert [name for name in HERE.modules("claims") if name.startswith("encore.plan")] == []


@pytest.mark.parametrize("stage", all_stages())
def test_every_stage_has_a_program(stage):
    program = HERE.stages.get(stage, {}).get("program", f"{stage.partition('.')[0]}.py")
    assert program in HERE.modules(stage)
    assert impl(stage.partition(".")[0] if stage.startswith(("prepare.", "count_pairs.")) else stage) >= 1


@pytest.mark.parametrize("kind", kinds.names())
def test_the_code_of_a_kind_of_collection_is_behind_its_own_stage_alone(kind):
    """The stage's variant is the module, where planning and the program find the kind."""
    modules = {each: kinds.modules()[each] for each in kinds.names()}
    module = modules.pop(kind)
    assert module in HERE.modules(f"collection.{kind}")
    assert not set(modules.values()) & set(HERE.modules(f"collection.{kind}"))


def test_an_objectives_own_file_is_behind_its_stage_alone():
    mlm, costa = (set(HERE.modules(f"pretrain.{name}")) for name in ("mlm", "costa"))
    assert mlm - costa == {"encore.objectives.mlm"}
    assert {"encore.objectives.costa", "encore.objectives.parts.stop_words"} <= costa - mlm
    assert not {f"encore.objectives.{name}" for name in objectives.names()} & set(HERE.modules("finetune"))


def test_comments_docstrings_and_layout_are_not_behaviour():
    one = 'def f(x):\n    """Says."""\n    return x + 1  # why\n'
    other = "def f(x):\n    return (x\n        + 1)\n"
    changed = "def f(x):\n    return x + 2\n"
    trees = [code_digest._dumped(code_digest._without_docstrings(ast.parse(text))) for text in (one, other, changed)]
    assert trees[0] == trees[1] != trees[2]


def test_every_python_writes_a_tree_as_python_3_11_does(monkeypatch):
    """Digests must not change with the Python: 3.12 has a field more and empty texts in formats, 3.13 omits fields."""
    tree = ast.parse('def f(x=None, *, y):\n    return f"{x:>{y}}"\n')
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and not any(isinstance(each, ast.Constant) for each in node.values):
            node.values.append(ast.Constant(""))
        if isinstance(node, ast.FunctionDef):
            node.type_params = []
            monkeypatch.setattr(ast.FunctionDef, "_fields", tuple(dict.fromkeys((*node._fields, "type_params"))))
    load = "ctx=Load()"
    width = f"JoinedStr(values=[FormattedValue(value=Name(id='y', {load}), conversion=-1)])"
    text = f"FormattedValue(value=Name(id='x', {load}), conversion=-1, format_spec=@)"
    text = text.replace("@", width.replace("[Form", "[Constant(value='>'), Form"))
    arguments = "posonlyargs=[], args=[arg(arg='x')], kwonlyargs=[arg(arg='y')], kw_defaults=[None]"
    arguments = f"arguments({arguments}, defaults=[Constant(value=None)])"
    body = f"[Return(value=JoinedStr(values=[{text}]))]"
    assert code_digest._dumped(tree) == (
        f"Module(body=[FunctionDef(name='f', args={arguments}, body={body}, decorator_list=[])], type_ignores=[])"
    )


def test_the_templates_next_to_a_module_are_behaviour(tmp_path):
    version = Code(tmp_path / "src/encore")
    skipped = shutil.ignore_patterns("__pycache__", "program")
    shutil.copytree(PACKAGE, version.package, ignore=skipped)
    shutil.copytree(HERE.programs, version.programs, ignore=skipped)
    with (version.package / "products/tables/templates/table.md.j2").open("a") as file:
        file.write("One more line.\n")
    assert version.changed(HERE.record(["table", "figure"])) == {"encore.products.tables.formats": ["table"]}


def test_a_folder_that_an_earlier_version_left_is_no_package(tmp_path):
    """A module may have become one file: git leaves the folder with what Python compiled in it."""
    version = Code(tmp_path / "src/encore")
    skipped = shutil.ignore_patterns("__pycache__", "program")
    shutil.copytree(PACKAGE, version.package, ignore=skipped)
    shutil.copytree(HERE.programs, version.programs, ignore=skipped)
    (version.package / "retrieval/encode/__pycache__").mkdir(parents=True)
    assert version.modules("encode") == HERE.modules("encode")


def test_an_unknown_stage_is_refused():
    with pytest.raises(EncoreError, match=r"stages\.yaml"):
        HERE.impl("reduce")


def test_the_record_is_yaml_that_names_modules():
    recorded = yaml.safe_load((PACKAGE / code_digest.RECORDED).read_text())
    assert {"encore.storage.document_ids", "encore.storage.files", "encode.py"} <= recorded["modules"].keys()


def test_what_was_read_is_not_read_again_until_it_changes(tmp_path, monkeypatch):
    package = tmp_path / "src/encore"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "program"))
    shutil.copytree(HERE.programs, tmp_path / "workflow/scripts", ignore=shutil.ignore_patterns("__pycache__"))
    first = Code(package).digest("encode")
    assert first == HERE.digest("encode")
    read, parse = [], ast.parse
    monkeypatch.setattr(ast, "parse", lambda text, *more: read.append(text) or parse(text, *more))
    assert Code(package).digest("encode") == first
    assert all('"templates"' in text for text in read), "these depend on other files too"
    often = len(read)
    with (package / "errors.py").open("a") as file:
        file.write("PLANTED = 1\n")
    assert Code(package).digest("encode") != first
    assert len(read) == often + often + 1
    for damaged in ("", "[]", "{", '{"encore.errors": 1}'):
        (package / "__pycache__/read_code.json").write_text(damaged)
        assert Code(package).digest("encode") != first

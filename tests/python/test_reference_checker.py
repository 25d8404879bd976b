"""`check --strict` refuses what onnx.checker.check_model(full_check=True) refuses: a sample of systematically broken models.

tools/compare_checker.py holds all of them against each other.
"""

import pathlib

import broken_models
import pytest
import reference_deviations

EVERY = 9  # of the broken models of a base
VERSIONS = (3, 5, 8, 10, 14)


@pytest.fixture(scope="module")
def bases():
    return broken_models.structural_bases(VERSIONS)


@pytest.fixture
def runner(sardonyx):
    return pathlib.Path(sardonyx.path).resolve().with_name("check_runner")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data.bin").write_bytes(bytes(8))
    return tmp_path


def both(runner, models, folder):
    with broken_models.working_in(folder):
        theirs = broken_models.reference_answers(models)
    return theirs, broken_models.sardonyx_errors(runner, models, folder)


def test_the_models_are_valid(bases, runner, folder):
    theirs, ours = both(runner, [model.SerializeToString() for model in bases.values()], folder)
    for name, their, our in zip(bases, theirs, ours):
        assert their is None and not our, (name, their, our)


def test_types_of_later_versions_are_refused(runner, folder):
    made = list(broken_models.version_models())
    models = [data for _, data in made]
    theirs = broken_models.reference_answers(models, infer_only=True)
    ours = broken_models.sardonyx_errors(runner, models, folder)
    refused = [their is not None and "unsupported type" in their for their in theirs]
    assert sum(refused) > 500
    accepted = [name for (name, _), is_refused, our in zip(made, refused, ours)
                if is_refused and not any(error.startswith("D-13") for error in our)]
    assert not accepted, accepted


def test_what_the_reference_refuses_is_refused(bases, runner, folder):
    made = []
    for offset, (name, base) in enumerate(bases.items()):
        made += [(name, *mutant) for mutant in list(broken_models.field_mutants(base))[offset % EVERY::EVERY]]
    theirs, ours = both(runner, [data for _, _, data in made], folder)
    assert sum(their is not None for their in theirs) > len(made) // 4  # else the models are not broken enough
    accepted = []
    for (name, what, _), their, our in zip(made, theirs, ours):
        if their is None or our or reference_deviations.is_open_zero(what):
            continue
        damaged, message = broken_models.deviation_class(name, what, their, True)
        if reference_deviations.reason(reference_deviations.FIELDS, damaged, message) is None:
            accepted.append(f"{name}: {what}: {' '.join(their.split())[:200]}")
    assert not accepted, "\n".join(accepted)

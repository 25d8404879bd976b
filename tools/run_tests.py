#!/usr/bin/env python3
"""Runs the test suites of a built tree and adds them up.

The last line is `N passed, N failed, N skipped`; the exit status is 1 when anything failed. Uses
only the standard library, so that it runs where no package index can be reached.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from concurrent import futures

ROOT = pathlib.Path(__file__).resolve().parent.parent
SUITES = ("cpp", "conformance", "python", "sanitize")
SANITIZE_WITHIN = 50 * 60  # seconds from the begin of continuous integration, which has ninety minutes
SANITIZED = ("base", "kernels", "ir", "wire", "schema", "check", "infer", "ops", "lower", "passes", "session", "ort_api")
# Of tests/python/package, those that stay inside the process.
SANITIZED_BINDINGS = ("session", "tools", "operators", "packed", "training", "onnxruntime_interface")


@dataclasses.dataclass
class Result:
    passed: int = 0
    failures: list[str] = dataclasses.field(default_factory=list)
    skips: list[tuple[str, str]] = dataclasses.field(default_factory=list)  # name, reason

    def add(self, other: Result) -> None:
        self.passed += other.passed
        self.failures += other.failures
        self.skips += other.skips


def run(command: list[str], log: pathlib.Path | None = None, **options) -> int:
    """Runs a command; its output goes to the log, and to the terminal when there is none."""
    print("$ " + " ".join(str(word) for word in command), flush=True)
    if log is None:
        return subprocess.run(command, **options).returncode
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as stream:
        code = subprocess.run(command, stdout=stream, stderr=subprocess.STDOUT, **options).returncode
    if code:
        sys.stdout.write("".join(log.open(errors="replace").readlines()[-60:]))
    return code


# --- C++ --------------------------------------------------------------------------------------


def gtest_result(prefix: str, report: pathlib.Path) -> Result:
    result = Result()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{prefix}: {case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None:
            result.failures.append(name)
        elif skipped is not None:
            result.skips.append((name, skipped.get("message", "").strip().splitlines()[-1]))
        elif case.get("status") == "run":
            result.passed += 1
    return result


def ctest(build: pathlib.Path, label: str, cases: str, emulator: tuple[str, ...]) -> Result:
    """Each GoogleTest case counts; a test that is no GoogleTest program counts once."""
    reports = build / "test-reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    junit = reports / "ctest.xml"
    environment = dict(os.environ, SARDONYX_ONNX_DATA=cases, GTEST_OUTPUT=f"xml:{shown(reports, emulator)}/", GTEST_COLOR="no")
    environment.setdefault("ASAN_OPTIONS", "detect_leaks=1:strict_string_checks=1")
    environment.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    run(["ctest", "--test-dir", str(build), "--output-on-failure", "--parallel", str(os.cpu_count()),
         "--timeout", "900", "--output-junit", str(junit)], env=environment)
    result = Result()
    if not junit.exists():
        result.failures.append(f"{label}: ctest wrote no report")
        return result
    for case in ElementTree.parse(junit).getroot().iter("testcase"):
        name = case.get("name")
        report = reports / f"test_{name}.xml"
        ok = case.get("status") == "run"
        counted = Result()
        if report.exists():
            counted = gtest_result(f"{label} {name}", report)
        if case.get("status") == "disabled" or case.find("skipped") is not None:
            # ctest says so of a program that was not built, for which nothing excuses.
            counted.failures.append(f"{label} {name}: not run")
        elif not ok and not counted.failures:
            counted.failures.append(f"{label} {name}: stopped before its end")
        elif ok and not report.exists():
            counted.passed += 1
        result.add(counted)
    return result


def shown(path: pathlib.Path, emulator: tuple[str, ...]) -> str:
    """A path as programs under the emulator know it: Wine has the root of the system as a drive."""
    return f"Z:{path}" if "wine" in "".join(emulator) else str(path)


def run_gtest(program: pathlib.Path, label: str, arguments: tuple[str, ...] = (), emulator: tuple[str, ...] = (),
              **variables: str) -> Result:
    report = program.parent.parent / "test-reports" / (label.replace(" ", "-") + ".xml")
    report.parent.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    code = run([*emulator, str(program), f"--gtest_output=xml:{shown(report, emulator)}", *arguments], log=report.with_suffix(".log"),
               env=dict(os.environ, GTEST_COLOR="no", **variables), timeout=1800)
    result = gtest_result(label, report) if report.exists() else Result()
    if code and not result.failures:
        result.failures.append(f"{label}: stopped before its end; see {report.with_suffix('.log')}")
    return result


def program_of(build: pathlib.Path, name: str) -> pathlib.Path:
    for_windows = build / "bin" / f"{name}.exe"
    return for_windows if for_windows.exists() else build / "bin" / name


def cpp_suite(options: argparse.Namespace) -> Result:
    """All of ctest, and the kernels once more as machines with less run them."""
    result = ctest(options.build, "cpp", options.cases, options.emulator)
    kernels = program_of(options.build, "test_kernels")
    bytes_alone = ("--gtest_filter=*Byte*:*Int8*:*NBits*",)  # what else differs from AVX2
    variants = {"avx512": (), "avx2": (), "baseline": (), "avx_vnni": bytes_alone}
    for variant, arguments in {"neon": ()}.items() if options.is_arm else variants.items():
        result.add(run_gtest(kernels, f"cpp kernels {variant}", arguments, options.emulator, SARDONYX_CPU=variant))
    return result


def sanitize_suite(options: argparse.Namespace) -> Result:
    began = float(os.environ.get("SARDONYX_CI_BEGAN", "inf"))
    if time.time() - began > SANITIZE_WITHIN:
        return Result(skips=[("sanitize", f"the rest has taken {(time.time() - began) / 60:.0f} minutes on this machine, and with its "
                              "build there would not be time for this suite")])
    build = ROOT / "build" / "asan"
    tests = [name for name in SANITIZED if list((ROOT / "tests" / name).glob("*.cc"))]
    bindings = ["sardonyx_python"] if options.python is not None else []
    code = run(["cmake", "--build", str(build), "--parallel", str(os.cpu_count()), "--target"]
               + [f"test_{name}" for name in tests] + ["graph_runner", *bindings], log=build / "build.log")
    if code:
        return Result(failures=["sanitize: the build failed"])
    watched = {"UBSAN_OPTIONS": "print_stacktrace=1", "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"}
    def watch(name: str) -> Result:
        return run_gtest(build / "bin" / f"test_{name}", f"sanitize {name}", **watched)

    def watch_half(name: str, half: int) -> Result:
        """Of what would go on alone when all others have ended."""
        return run_gtest(build / "bin" / f"test_{name}", f"sanitize {name} half {half + 1}", GTEST_TOTAL_SHARDS="2",
                         GTEST_SHARD_INDEX=str(half), **watched)

    def watch_baseline() -> Result:
        """Every target has had its turn already, but on a processor with all that this one has beside it."""
        return run_gtest(build / "bin" / "test_kernels", "sanitize kernels baseline", ("--gtest_filter=-Targets/*",),
                         SARDONYX_CPU="baseline", **watched)

    result = Result()
    with futures.ThreadPoolExecutor(os.cpu_count()) as pool:  # the longest first
        running = [*(pool.submit(watch_half, "session", half) for half in range(2)),
                   pool.submit(watch, "kernels"), pool.submit(watch_baseline),
                   *(pool.submit(watch, name) for name in tests if name not in ("kernels", "session")),
                   pool.submit(watched_graphs, options, build / "bin" / "graph_runner"),
                   pool.submit(watched_bindings, options, build)]
        for one in running:
            result.add(one.result())
    return result


def watched_graphs(options: argparse.Namespace, runner: pathlib.Path) -> Result:
    """Random graphs, other ones than those of the Python suite."""
    if options.python is None:
        return Result(skips=[("sanitize random graphs", "its packages could not be installed")])
    log = runner.parent.parent / "test-reports" / "sanitize-random-graphs.log"
    code = run([options.python, str(ROOT / "tests" / "python" / "random_graphs.py"), str(runner), "--alone", "--seed", "5001",
                "--count", "60"], log=log)
    return Result(failures=[f"sanitize random graphs: see {log}"]) if code else Result(passed=1)


def watched_bindings(options: argparse.Namespace, build: pathlib.Path) -> Result:
    """The Python package. Python itself is not watched: the sanitizer is loaded before it, and what it keeps at its end is no leak."""
    if options.python is None:
        return Result(skips=[("sanitize bindings", "its packages could not be installed")])
    libraries = [subprocess.run(["g++", f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
                 for name in ("libasan.so", "libstdc++.so")]
    environment = dict(os.environ, LD_PRELOAD=" ".join(libraries), SARDONYX_PACKAGE=str(build / "python"),
                       ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1", UBSAN_OPTIONS="print_stacktrace=1")
    report = build / "test-reports" / "sanitize-bindings.xml"
    report.unlink(missing_ok=True)
    run([options.python, "-m", "pytest", "-q", "--disable-warnings", "-m", "not memory and not starts_the_program", f"--junitxml={report}",
         *(f"tests/python/package/test_{name}.py" for name in SANITIZED_BINDINGS)], cwd=ROOT, env=environment,
        log=report.with_suffix(".log"))
    return pytest_result("sanitize bindings", report)


# --- conformance ------------------------------------------------------------------------------


def conformance_suite(options: argparse.Namespace) -> Result:
    result = Result()
    for cases in [options.cases, *options.historic]:
        result.add(conformance_of(cases, options))
    if options.emulator:  # inference is the same everywhere
        return result
    for cases in [options.cases, *options.historic]:
        release = pathlib.Path(cases).name
        result.add(inference_result(options, cases, f"infer {release}"))
        result.add(inference_result(options, cases, f"infer {release} symbolic and random", "--random", "2"))
    result.add(shapes_result(options))
    result.add(differential_result(options))
    return result


def shapes_result(options: argparse.Namespace) -> Result:
    """What inference says of random graphs that compute shapes against what they compute."""
    log = options.build / "test-reports" / "shapes.log"
    code = run([str(options.build / "bin" / "shape_runner"), "--count", "200"], log=log)
    return Result(failures=[f"random shapes: see {log}"]) if code else Result(passed=1)


def differential_result(options: argparse.Namespace) -> Result:
    """Random nodes against other evaluators, the same ones each time."""
    if options.python is None:
        return Result(skips=[("differential", "its packages could not be installed")])
    report = options.build / "test-reports" / "differential.json"
    report.unlink(missing_ok=True)
    run([options.python, str(ROOT / "tools" / "differential.py"), "--runner", str(options.build / "bin" / "conformance_runner"),
         "--cases", "3", "--json", str(report)], log=report.with_suffix(".log"))
    if not report.exists():
        return Result(failures=["differential: stopped before its end"])
    found = json.loads(report.read_text())
    return Result(passed=found["passed"], failures=[f"differential {failure}" for failure in found["failures"]])


def conformance_of(cases: str, options: argparse.Namespace) -> Result:
    release = options.release if options.release and cases == options.cases else pathlib.Path(cases).name
    report = options.build / "test-reports" / f"conformance-{release}.json"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    code = run([*options.emulator, str(program_of(options.build, "conformance_runner")), "--cases", cases, "--release", release,
                "--exceptions", str(ROOT / "tests" / "conformance" / "exceptions.txt"), "--mode", "both",
                "--json", str(report)], log=report.with_suffix(".log"))
    if not report.exists():
        return Result(failures=[f"conformance {release}: the runner stopped before its end"])
    result = Result()
    for case in json.loads(report.read_text())["cases"]:
        name, reason = f"conformance {release} {case['name']}", case["reason"]
        if case["state"] == "passed":
            result.passed += 1
        elif case["state"] == "skipped":
            result.skips.append((name, reason_of_skip(reason)))
        elif case["state"] == "superseded":
            result.skips.append((name, "superseded: " + reason))
        else:
            result.failures.append(f"{name}: {reason}")
    if code and not result.failures:
        result.failures.append(f"conformance {release}: the runner exited with {code}")
    if not result.passed and not result.failures:
        result.failures.append(f"conformance {release}: no case found in {cases}")
    return result


def inference_result(options: argparse.Namespace, cases: str, label: str, *arguments: str) -> Result:
    """What inference says of the same cases against what they compute."""
    report = options.build / "test-reports" / f"{label.replace(' ', '-')}.json"
    report.unlink(missing_ok=True)
    run([str(options.build / "bin" / "infer_runner"), "--cases", cases, "--exceptions",
         str(ROOT / "tests" / "conformance" / "exceptions.txt"), "--json", str(report), *arguments],
        log=report.with_suffix(".log"))
    if not report.exists():
        return Result(failures=[f"{label}: the runner stopped before its end"])
    result = Result()
    for case in json.loads(report.read_text()):
        name = f"{label} {pathlib.Path(case['case']).name}"
        if "skipped" in case:
            result.skips.append((name, reason_of_skip(case["skipped"])))
        elif "wrong" in case or "problems" in case:
            result.failures.append(f"{name}: {case.get('wrong') or case['problems'][0]}")
        else:
            result.passed += 1
    return result


def reason_of_skip(message: str) -> str:
    """The message without the node it names, so that equal reasons count together."""
    return message.split(": ", 1)[-1]


# --- Python -----------------------------------------------------------------------------------


def python_suite(options: argparse.Namespace) -> Result:
    if options.python is None:
        return Result(skips=[("python harness", "its packages could not be installed")])
    report = (options.build / "test-reports" / "pytest.xml").resolve()
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    environment = dict(os.environ, SARDONYX_PROGRAM=str((options.build / "bin" / "sardonyx").resolve()),
                       SARDONYX_PACKAGE=str((options.build / "python").resolve()))
    # Fixtures are made once a file: the tests of a file stay together.
    run([options.python, "-m", "pytest", "-q", "-rs", "--disable-warnings", f"--numprocesses={os.cpu_count()}", "--dist=loadfile",
         f"--junitxml={report}", "tests"], cwd=ROOT, env=environment)
    return pytest_result("python", report)


def pytest_result(prefix: str, report: pathlib.Path) -> Result:
    if not report.exists():
        return Result(failures=[f"{prefix}: pytest stopped before its end"])
    result = Result()
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = f"{prefix} {case.get('classname')}.{case.get('name')}"
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            result.failures.append(name)
        elif skipped is not None:
            result.skips.append((name, skipped.get("message", "")))
        else:
            result.passed += 1
    if not result.passed and not result.failures:
        result.failures.append(f"{prefix}: no test was found")
    return result


# --- the sum ----------------------------------------------------------------------------------


def print_skips(skips: list[tuple[str, str]]) -> None:
    reasons = collections.defaultdict(list)
    for name, reason in skips:
        reasons[reason].append(name)
    if reasons:
        print("\nskipped, by reason:")
    for reason, names in sorted(reasons.items(), key=lambda item: -len(item[1])):
        print(f"  {len(names):5} {reason} (e.g. {names[0]})")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve(), required=True, help="the built tree")
    parser.add_argument("--cases", type=os.path.abspath, required=True, help="the folder of backend test cases")
    parser.add_argument("--release", help="of onnx that the cases are of, where their folder does not say")
    parser.add_argument("--historic", action="append", default=[],
                        help="a folder of a historic release's cases, named after it; repeatable")
    parser.add_argument("--python", help="a Python with the packages of tools/requirements.txt")
    parser.add_argument("--emulator", type=lambda text: (text,), default=(),
                        help="what runs the tree's programs, which are of another processor or system; for the suites cpp and conformance")
    parser.add_argument("--is-arm", action="store_true", help="that processor has the levels of Arm")
    parser.add_argument("--suite", action="append", choices=SUITES, help="only this one; repeatable")
    parser.add_argument("--sanitize", action="store_true", help="also the suite `sanitize`")
    parser.add_argument("--note", action="append", default=[], help="a closing line to print")
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    chosen = options.suite or [name for name in SUITES if name != "sanitize"]
    if options.sanitize and "sanitize" not in chosen:
        chosen.append("sanitize")
    functions = {"cpp": cpp_suite, "conformance": conformance_suite, "python": python_suite,
                 "sanitize": sanitize_suite}
    if options.emulator:
        os.environ["SARDONYX_EMULATED"] = "1"  # for tests of what the system itself does
    total, lines = Result(), []
    for name in chosen:
        print(f"\n== {name}", flush=True)
        start = time.monotonic()
        result = functions[name](options)
        lines.append(f"{name:12} {result.passed:6} passed {len(result.failures):5} failed "
                     f"{len(result.skips):5} skipped  {time.monotonic() - start:6.0f} s")
        total.add(result)
    print_skips(total.skips)
    if total.failures:
        print("\nfailed:")
        for name in total.failures:
            print("  " + name)
    print("\n" + "\n".join(lines + options.note))
    print(f"{total.passed} passed, {len(total.failures)} failed, {len(total.skips)} skipped")
    return 1 if total.failures else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes wrong_calls.inc: every function of the C interface, called wrongly in every way its parameters allow.

Reads the declarations of the public headers, so that no function can be left out: a function whose parameters are of
a type that is not known here ends the build. tests/capi/wrong_calls_test.c has what the calls are made with.
"""

from __future__ import annotations

import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from c_interface import declarations, types  # noqa: E402

# Parameters that may be NULL, by function; "*" is for all.
MAY_BE_NULL = {
    "*": {"options", "load_options", "user", "release", "length"},
    "sardonyx_status_create": {"message"},
    "sardonyx_tensor_create_strings": {"lengths"},
    "sardonyx_tensor_type": {"type", "rank", "dims", "elements"},
    "sardonyx_tensor_data": {"bytes"},
    "sardonyx_tensor_mutable_data": {"bytes"},
    "sardonyx_sparse_parts": {"values", "indices", "rank", "dims"},
    "sardonyx_optional_create": {"held"},
    "sardonyx_model_pack": {"forms", "bytes"},
    "sardonyx_model_compare_packed": {"forms", "text"},
    "sardonyx_model_load_memory": {"folder"},
    "sardonyx_model_read": {"folder"},
    "sardonyx_model_initializer": {"name", "value"},
    "sardonyx_editor_set_metadata": {"value"},
    "sardonyx_editor_set_dimension": {"name"},
    "sardonyx_editor_add_output": {"type"},
    "sardonyx_editor_set_initializer": {"value"},
    "sardonyx_session_run": {"output_names"},
    "sardonyx_binding_input": {"value"},
    "sardonyx_binding_output": {"tensor"},
    "sardonyx_domain": {"domain", "newest"},
    "sardonyx_declared_type_dimension": {"number", "name", "denotation"},
    "sardonyx_graph_annotation": {"tensor_name", "parameter_count"},
    "sardonyx_stored_sparse_describe": {"name", "rank", "dims"},
    "sardonyx_stored_sparse_parts": {"values", "indices"},
    "sardonyx_machine_peak": {"gflops", "gbps"},
    "sardonyx_limits_level": {"name", "bytes", "gbps"},
    "sardonyx_named_values_get": {"name", "value"},
    "sardonyx_values_compare": {"tolerance"},
    "sardonyx_runs_compare": {"tolerance"},
    "sardonyx_rank_answers": {"given"},
    "sardonyx_summary_operator": {"name", "count", "supported"},
    "sardonyx_summary_parameter_type": {"type", "elements"},
    "sardonyx_session_memory": {"packed_bytes", "arena_bytes"},
    "sardonyx_pass": {"name", "summary"},
    "sardonyx_model_optimized_text": {"stop_after"},
    "sardonyx_inference_unknown": {"name", "bound", "node", "reason"},
    "sardonyx_inference_name": {"name", "expression"},
    "sardonyx_training_step_if": {"accept"},
    "sardonyx_training_fit": {"result"},
    "sardonyx_metrics_get": {"name", "value"},
    "sardonyx_last_checkpoint": {"step"},
    "sardonyx_make_trainable_file": {"external_data", "report"},
    "sardonyx_model_save_reported": {"model_bytes", "data_bytes", "notes"},
    "sardonyx_ending_problem": {"source"},
    "sardonyx_model_run_passes": {"pass_options"},
}
# Handles that the test has one of.
FIXTURES = ("value model session binding report bytes differences editor inference threads cancel profile training "
           "operators signatures operator_set status named_values limits summary plan comparisons "
           "training_data trainable_report fit_result metrics").split()
# Given to functions of the caller's only; no call can have one from outside.
CONTEXTS = "operator_node shape_context kernel_builder kernel_shapes kernel_context pass_graph".split()
VIEWS = "graph node attribute function declared_value declared_type stored_tensor stored_sparse".split()
NUMBERS = {"char": "'+'", "int": "1", "int32_t": "1", "int64_t": "1", "size_t": "1", "uint64_t": "1", "float": "1",
           "double": "1", "sardonyx_code": "SARDONYX_BAD_INPUT", "sardonyx_element_type": "SARDONYX_FLOAT32",
           "sardonyx_attribute_type": "1", "sardonyx_field": "SARDONYX_FIELD_DOMAIN",
           "sardonyx_inferred_state": "0", "sardonyx_level": "0",
           "sardonyx_form": "SARDONYX_FORM_TEXT", "sardonyx_named": "SARDONYX_NAMED_VALUE"}
PLACES = {"index", "which", "algorithm", "element", "parameter"}  # that SIZE_MAX is none of
# Values by function and parameter, or by parameter.
VALID = {
    ("sardonyx_value*", "sequence"): "fix.sequence", ("sardonyx_value*", "map"): "fix.map",
    ("sardonyx_value*", "sparse"): "fix.sparse", ("sardonyx_value*", "optional"): "fix.optional",
    ("sardonyx_value*", "keys"): "fix.keys", ("sardonyx_value*", "indices"): "fix.keys",
    ("sardonyx_map_create", "count"): "2", ("sardonyx_map_create", "values"): "fix.two_values",
    ("sardonyx_sparse_create", "values"): "fix.pair", ("sardonyx_tensor_string", "tensor"): "fix.strings",
    ("sardonyx_tensor_read_integers", "tensor"): "fix.keys",
    ("sardonyx_editor_set_number", "field"): "SARDONYX_FIELD_MODEL_VERSION",
    ("sardonyx_session_run", "output_count"): "2", ("sardonyx_session_run", "output_names"): "NULL",
    ("sardonyx_session_run_in_order", "output_count"): "2",
    ("sardonyx_model_load_memory", "data"): "fix.file", ("sardonyx_model_load_memory", "bytes"): "fix.file_size",
    ("sardonyx_model_parse", "text"): "affine", ("sardonyx_model_parse", "length"): "strlen(affine)",
    ("sardonyx_convert_file", "to"): '"wrong_calls_out.json"', ("sardonyx_infer_file", "output"): '"wrong_calls_out.onnx"',
    ("sardonyx_model_save", "path"): '"wrong_calls_out.onnx"', ("sardonyx_training_save", "path"): '"wrong_calls_out.onnx"',
    ("sardonyx_operator_set_save", "path"): '"wrong_calls_out.json"', ("sardonyx_operator_set_load", "path"): '"wrong_calls_set.json"',
    ("sardonyx_model_convert", "opset"): "22", ("sardonyx_editor_set_opset", "version"): "21",
    ("sardonyx_operator_set_of_standard", "version"): "21", ("sardonyx_signatures_find", "opset"): "21",
    ("sardonyx_editor_set_dimension", "axis"): "0", ("sardonyx_editor_set_dimension", "size"): "-1",
    ("sardonyx_model_extract", "inputs"): "fix.input_names", ("sardonyx_model_extract", "outputs"): "fix.output_names",
    ("sardonyx_model_rename", "from"): "fix.input_names", ("sardonyx_model_rename", "to"): "fix.new_names",
    ("sardonyx_tensor_create_strings", "texts"): "fix.new_names", ("sardonyx_session_run", "input_names"): "fix.input_names",
    ("sardonyx_operators_add", "domain"): '"com.example"', ("sardonyx_binding_value", "output"): '"z"',
    ("sardonyx_graph_find_initializer", "name"): '"w"', ("sardonyx_graph_find_output", "name"): '"z"',
    ("sardonyx_node_find_attribute", "name"): '"then_branch"', ("sardonyx_signatures_of", "name"): '"Softmax"',
    ("sardonyx_signatures_find", "name"): '"Softmax"', ("sardonyx_attribute_string", "attribute"): "fix.strings_attribute",
    ("sardonyx_attribute_float", "attribute"): "fix.float_attribute", ("sardonyx_attribute_int", "attribute"): "fix.int_attribute",
    ("sardonyx_attribute_floats", "attribute"): "fix.floats_attribute", ("sardonyx_attribute_ints", "attribute"): "fix.ints_attribute",
    ("sardonyx_tensor_from_dlpack", "managed"): "NULL", ("sardonyx_model_summarize", "size_names"): "fix.dim_names",
    ("sardonyx_value_read", "path"): '"wrong_calls.npy"', ("sardonyx_value_write", "path"): '"wrong_calls_out.npy"',
    ("sardonyx_npz_read", "path"): '"wrong_calls.npz"', ("sardonyx_npz_write", "path"): '"wrong_calls_out.npz"',
    ("sardonyx_run_read", "path"): '"wrong_calls.npz"', ("sardonyx_input_read", "path"): '"wrong_calls.npy"',
    ("sardonyx_outputs_write", "folder"): '"wrong_calls_out"', ("sardonyx_input_parse", "text"): '"[[1, 2]]"',
    ("sardonyx_runs_compare", "actual"): "fix.named_values", ("sardonyx_runs_compare", "expected"): "fix.named_values",
    ("sardonyx_tensor_read_doubles", "count"): "2", ("sardonyx_tensor_from_integers", "count"): "2",
    ("sardonyx_rank_answers", "top"): "2", ("sardonyx_session_plan", "input_names"): "fix.input_names",
    ("sardonyx_infer_in_place", "path"): '"wrong_calls_typed.onnx"', ("sardonyx_model_optimized_text", "stop_after"): "NULL", ("sardonyx_tensor_from_floats", "count"): "2",
    ("sardonyx_tensor_read_floats", "count"): "2", ("sardonyx_tensor_read_integers", "count"): "2",
    ("sardonyx_editor_remove_output", "name"): '"nothing"', ("sardonyx_editor_remove_input", "name"): '"nothing"',
    ("sardonyx_make_trainable_file", "path"): '"wrong_calls_out.onnx"',
    ("sardonyx_make_trainable_file", "external_data"): "NULL", ("sardonyx_model_save_reported", "path"): '"wrong_calls_out.onnx"',
    ("sardonyx_training_data_create", "names"): "fix.input_names", ("sardonyx_training_data_read", "path"): '"wrong_calls_data.npz"',
    ("sardonyx_training_data_batch", "places"): "fix.places", ("sardonyx_training_step_if", "input_names"): "fix.input_names",
    ("sardonyx_outputs_write_npz", "path"): '"wrong_calls_out.npz"', ("sardonyx_outputs_write_npz", "count"): "2",
    ("sardonyx_outputs_write_npz", "outputs"): "fix.two_values", ("sardonyx_session_making_order", "order"): "fix.order",
    ("sardonyx_session_making_order", "count"): "2", ("sardonyx_text_write", "path"): '"wrong_calls_out.txt"',
    ("sardonyx_text_read", "path"): '"wrong_calls.npy"', ("sardonyx_text_write", "length"): "2", ("sardonyx_printable", "length"): "2",
    ("sardonyx_ending_problem", "source"): "NULL",
    "domain": '""', "path": '"wrong_calls.onnx"', "from": '"wrong_calls.onnx"', "folder": '"."', "name": '"x"',
    "key": '"key"', "type": '"float[N, 2]"', "value": '"x"', "text": '"text"', "signature": "one_signature",
    "rank": "2", "bytes": "sizeof fix.memory", "bytes_before": "0", "rule": '"rule"', "message": '"message"',
    "output": '"y"', "index": "0", "which": "0", "algorithm": "0", "element": "0", "parameter": "0", "axis": "0",
    "prefix": '"a_"', "denotation": '"IMAGE"', "length": "2", "max_events": "10",
}
TYPES = types(pathlib.Path(sys.argv[1]))
HANDLES = TYPES["handles"]
NUMBERS |= {name: "0" for name in TYPES["numbers"] if name not in NUMBERS}
CALLBACKS = {name: "NULL" for name in TYPES["callbacks"]} | {"sardonyx_write_function": "on_write", "sardonyx_done": "on_done", "sardonyx_read_function": "on_read", "sardonyx_visit_function": "on_visit", "sardonyx_accept_function": "on_accept",
             "void (*)(void* user)": "NULL", "void (*)(void* user, int64_t begin, int64_t end)": "on_piece"}


class Call:
    """One function: how it is called right, and the ways to call it wrongly."""

    def __init__(self, result: str, name: str, parameters):
        self.result, self.name, self.parameters = result, name, parameters
        self.before, self.after, self.ways = [], [], [("nothing", "", "ANY")]
        self.named = [parameter for _, parameter in parameters]  # what messages may speak of
        self.valid = [self.value_of(i, kind, parameter) for i, (kind, parameter) in enumerate(parameters)]

    def may_be_null(self, parameter: str) -> bool:
        return parameter in MAY_BE_NULL["*"] or parameter in MAY_BE_NULL.get(self.name, ())

    def way(self, what: str, change: str, refused: bool) -> None:
        self.ways.append((what, change, "REFUSED" if refused and self.result == "sardonyx_status*" else "ANY"))

    def value_of(self, i: int, kind: str, parameter: str) -> str:
        bare, known = kind.replace("const ", ""), VALID.get((self.name, parameter))
        struct = re.fullmatch(r"sardonyx_(\w+?)(\**)", bare.replace("* const*", "**"))
        null = lambda: self.way(f"{parameter} = NULL", f"a{i} = NULL;", not self.may_be_null(parameter))
        if kind in CALLBACKS:
            null()
            return CALLBACKS[kind]
        if bare in NUMBERS:
            if parameter in PLACES or (bare == "size_t" and parameter == "axis"):
                self.way(f"{parameter} is beyond all", f"a{i} = SIZE_MAX;", True)
            elif bare in ("sardonyx_element_type", "sardonyx_field", "sardonyx_form", "sardonyx_named"):
                for wrong in ("-1", "999", "INT32_MAX"):
                    self.way(f"{parameter} = {wrong}", f"a{i} = {wrong};", True)
            elif bare in ("int", "int64_t", "int32_t"):
                self.way(f"{parameter} is negative", f"a{i} = -7;", (self.name, parameter) in NEGATIVE)
                self.way(f"{parameter} is large", f"a{i} = {'INT64_MAX' if bare == 'int64_t' else 'INT32_MAX'};", False)
            default = "0" if parameter in ("input", "output") else VALID.get(parameter) if bare == "size_t" else None
            return known or default or NUMBERS[bare]
        if struct and (struct[1] in HANDLES or struct[1] in CONTEXTS):
            return self.handle(i, kind, struct[1], struct[2], parameter, known, null)
        if struct and struct[1] in VIEWS and not struct[2]:
            self.way(f"{parameter} is zeros", f"memset(&a{i}, 0, sizeof a{i});", True)
            return known or f"fix.{struct[1]}"
        if bare == "sardonyx_dim":
            return "fix.dim"
        if struct and struct[2] == "*":
            null()
            return self.pointed_struct(i, kind, struct[1], parameter)
        null()
        if bare == "char*":
            self.way(f'{parameter} = ""', f'a{i} = "";', False)
            self.way(f"{parameter} is no UTF-8", f'a{i} = "\\xff\\xfe";', False)
            return known or VALID[parameter]
        if bare == "char* const*":
            self.way(f"{parameter} holds NULL", f"a{i} = no_names;", True)
            return known or "fix.input_names"
        arrays = {"int64_t*": "dims", "float*": "numbers", "size_t*": "sizes", "void*": "memory"}
        if (self.name, parameter) in (("sardonyx_rank_answers", "indices"), ("sardonyx_rank_answers", "probabilities")):
            return f"({bare})fix.room"
        if bare in arrays and kind.startswith("const "):
            return known or f"fix.{arrays[bare]}"
        if bare == "void*":
            return known or ("fix.memory" if parameter == "data" else "NULL")
        if bare in ("float*", "double*", "int64_t*") and parameter == "to":
            return f"({bare})fix.room"
        # What is left are places of results.
        if not kind.endswith("*") or (kind.startswith("const ") and kind.count("*") == 1):
            sys.exit(f"wrong_calls.py does not know how to pass {kind} to {self.name}")
        place = kind[:-1].strip()
        self.before.append(f"{place} r{i} = {'NULL' if place.endswith('*') or place.endswith('* const') else '0'};")
        if self.name == "sardonyx_tensor_to_dlpack":
            self.after.append(f"release_managed(r{i});")
        else:
            self.after.append(f"(void)r{i};")
        return f"&r{i}"

    def handle(self, i, kind, what, stars, parameter, known, null) -> str:
        known = known or VALID.get((f"sardonyx_{what}*", parameter))
        if stars == "**" and kind.startswith(f"sardonyx_{what}**"):  # results
            self.way(f"{parameter} = NULL", f"a{i} = NULL;", not self.may_be_null(parameter))
            self.before.append(f"sardonyx_{what}* r{i}[2] = {{NULL, NULL}};")
            self.after.append(f"if (failed) CHECK(r{i}[0] == NULL && r{i}[1] == NULL);")
            self.after.append(f"sardonyx_{what}_release(r{i}[0]);")
            self.after.append(f"sardonyx_{what}_release(r{i}[1]);")
            return f"r{i}"
        if "* const*" in kind:
            null()
            self.way(f"{parameter} holds NULL", f"a{i} = no_values;", True)
            self.way(f"{parameter} holds another handle", f"a{i} = wrong_values;", True)
            return known or "fix.values"
        null()
        other = "fix.model" if what == "cancel" else "fix.cancel"
        self.way(f"{parameter} is another handle", f"a{i} = ({kind}){other};", True)
        self.way(f"{parameter} was released", f"a{i} = ({kind})dead_handle();", True)
        if what not in FIXTURES or self.name.endswith("_release"):
            return known or "NULL"
        return known or f"fix.{what}"

    def pointed_struct(self, i, kind, what, parameter) -> str:
        if what == "dim":
            self.before.append(f"sardonyx_dim r{i} = {{NULL, 1}};")
            return f"&r{i}"
        if what in VIEWS or f"sardonyx_{what}" in NUMBERS:
            self.before.append(f"sardonyx_{what} r{i};\n  memset(&r{i}, 0, sizeof r{i});")
            return f"&r{i}"
        self.before.append(f"sardonyx_{what} r{i} = SARDONYX_INIT(sardonyx_{what});")
        if what == "operator":
            self.before.append(f"r{i}.infer = on_infer;\n  r{i}.run = on_run;")
        if kind.startswith("const "):
            self.named.append("*")  # any field of it
        self.way(f"{parameter} has no size", f"r{i}.size = 0;", True)
        self.way(f"{parameter} has a small size", f"r{i}.size = sizeof(size_t);", False)
        return f"&r{i}"

    def text(self) -> str:
        lines = [f"static int wrong_{self.name}(int which) {{"]
        lines += [f"  {line}" for line in self.before]
        for i, ((kind, _), valid) in enumerate(zip(self.parameters, self.valid)):
            declared = kind.replace("(*)", f"(*a{i})") if "(*)" in kind else f"{kind} a{i}"
            lines.append(f"  {declared} = {valid};")
        names = "".join(f"{name} " for name in self.named)
        lines.append(f'  int expected = ANY, failed = 0;\n  parameters = "{names}";\n  switch (which) {{')
        for number, (what, change, expected) in enumerate(self.ways):
            lines.append(f'    case {number}: {change} expected = {expected}; way = "{what.replace(chr(34), chr(39))}"; break;')
        lines.append("    default: return 0;\n  }")
        call = f"{self.name}({', '.join(f'a{i}' for i in range(len(self.parameters)))})"
        if self.result == "sardonyx_status*":
            lines.append(f"  failed = judge({call}, expected);")
        elif self.result == "void":
            lines.append(f"  {call};")
        else:
            lines.append(f"  (void){call};")
        lines.append("  (void)expected;\n  (void)failed;")
        lines += [f"  {line}" for line in self.after]
        lines.append("  return 1;\n}\n")
        return "\n".join(lines)


NEGATIVE = {("sardonyx_threads_create", "count"), ("sardonyx_model_convert", "opset"),
            ("sardonyx_machine_peak", "threads"), ("sardonyx_limits_measure", "threads"),
            ("sardonyx_editor_set_opset", "version"), ("sardonyx_editor_set_dimension", "axis"),
            ("sardonyx_operator_set_of_standard", "version")}


def main() -> int:
    calls = [Call(one.result, one.name, one.parameters) for one in declarations(pathlib.Path(sys.argv[1]))]
    text = "/* Made by tests/capi/wrong_calls.py. */\n" + "\n".join(call.text() for call in calls)
    text += "static const wrong_function wrong_functions[] = {\n"
    text += "".join(f'  {{"{call.name}", wrong_{call.name}}},\n' for call in calls) + "};\n"
    pathlib.Path(sys.argv[2]).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

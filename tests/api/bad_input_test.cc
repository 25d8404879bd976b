// Every function of the public C++ interface, given what it cannot use: nothing, the wrong kind or
// size, names that do not exist, callbacks that are empty, objects that have been moved from. Each
// says so in an Error, or answers that there is nothing; none crashes, and files stay as they were.
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <limits>

#include "sardonyx/allocator.h"
#include "sardonyx/binding.h"
#include "sardonyx/check.h"
#include "sardonyx/compose.h"
#include "sardonyx/convert.h"
#include "sardonyx/custom.h"
#include "sardonyx/dlpack.h"
#include "sardonyx/edit.h"
#include "sardonyx/elements.h"
#include "sardonyx/files.h"
#include "sardonyx/fit.h"
#include "sardonyx/infer.h"
#include "sardonyx/info.h"
#include "sardonyx/inputs.h"
#include "sardonyx/machine.h"
#include "sardonyx/operator_set.h"
#include "sardonyx/outputs.h"
#include "sardonyx/packing.h"
#include "sardonyx/passes.h"
#include "sardonyx/profile.h"
#include "sardonyx/ranking.h"
#include "sardonyx/signatures.h"
#include "sardonyx/tensor_ref.h"
#include "sardonyx/text.h"
#include "sardonyx/trainable.h"
#include "sardonyx/training_artifacts.h"
#include "support.h"

namespace sardonyx {
namespace {

using enum ErrorCode;
using test::ScratchFolder;

constexpr int64_t huge = std::numeric_limits<int64_t>::max();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// What was thrown, as its code and words: "bad input: there is no item of this index".
std::string told(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_FALSE(error.message().empty());
    return std::string(name_of(error.code())) + ": " + error.what();
  } catch (const std::exception& other) {
    return std::string("not an Error: ") + other.what();
  }
  return "nothing was thrown";
}

// Refused with this code; what was said otherwise.
void refused(ErrorCode code, const char* what, const std::function<void()>& call) {
  const std::string found = told(call);
  EXPECT_TRUE(found.starts_with(std::string(name_of(code)) + ": ")) << what << " gives " << found;
}
#define REFUSED(code, call) refused(code, #call, [&] { (void)(call); })

Model square() {
  return Model::from_text(
      "<ir_version: 10, opset_import: [\"\" : 21]> g (float[n, 2] x) => (float[n, 2] y) <float[2] "
      "w "
      "= {1, 2}> { y = Mul(x, w) }");
}
Tensor ones(Shape shape, ElementType type = ElementType::float32) {
  Tensor made(type, std::move(shape));
  std::fill_n(static_cast<std::byte*>(made.mutable_data()), made.byte_size(), std::byte{0});
  return made;
}

TEST(BadInput, Tensors) {
  REFUSED(bad_input, Tensor(ElementType::float32, {-1}));
  REFUSED(bad_input, Tensor(ElementType::undefined, {1}));
  REFUSED(bad_input, Tensor(static_cast<ElementType>(99), {1}));
  EXPECT_NE(told([] { Tensor(ElementType::float32, {huge, huge}); }), "nothing was thrown");
  EXPECT_NE(told([] { Tensor(ElementType::float32, {huge / 8}); }), "nothing was thrown");
  REFUSED(bad_input, Tensor::of<float>({1, 2}, {3}));
  const Tensor two = Tensor::of<float>({1, 2}, {2});
  REFUSED(bad_input, two.elements<double>());
  REFUSED(bad_input, two.reshaped({3}));
  REFUSED(bad_input, two.reshaped({-1}));
  REFUSED(bad_input, two.reshaped({huge, huge}));
  const Tensor none;
  REFUSED(bad_input, none.elements<float>());
  REFUSED(bad_input, none.reshaped({1}));
  EXPECT_EQ(none.element_type(), ElementType::undefined);

  REFUSED(bad_input, tensor_of({ElementType::float32, {2}, nullptr, 0}));
  REFUSED(bad_input, tensor_of(TensorRef{{ElementType::float32, {2}, two.data(), 4}}));
  REFUSED(bad_input, tensor_of(TensorRef{{ElementType::float32, {2}, two.data(), 8, {1, 1}}}));
  REFUSED(bad_input, tensor_of(TensorRef{{ElementType::float32, {2}, two.data(), 8, {-1}}}));
  REFUSED(bad_input, tensor_of(TensorRef{{ElementType::float32, {2}, two.data(), 8, {huge}}}));
  REFUSED(bad_input, tensor_of(TensorRef{{ElementType::string, {2}, two.data(), 8}}));
  REFUSED(bad_input, tensor_of(TensorRef{{ElementType::undefined, {2}, two.data(), 8}}));
  REFUSED(bad_input, tensor_of(TensorRef{{ElementType::float32, {-2}, two.data(), 8}}));
  REFUSED(bad_input, copy_of(TensorRef{{ElementType::float32, {3}, two.data(), 8}}));
  REFUSED(bad_input, is_dense({{ElementType::float32, {huge, huge}, nullptr, 0, {1}}}));
  EXPECT_NO_THROW(ref_of(none));
  REFUSED(bad_input, strings_of({}, {1}));

  REFUSED(bad_input, element_as_float(two, -1));
  REFUSED(bad_input, element_as_float(two, 2));
  REFUSED(bad_input, element_as_float(none, 0));
  REFUSED(bad_input, element_as_int(two, 0));
  REFUSED(bad_input, read_as<int64_t>(two));
  REFUSED(bad_input, read_as<float>(none));
  REFUSED(bad_input, read_as<float>(Tensor::of<std::string>({"a"}, {1})));
  REFUSED(bad_input, tensor_from(ElementType::string, std::span<const float>(), {0}));
  REFUSED(bad_input, tensor_from(ElementType::float32, std::span<const float>(), {1}));
  REFUSED(bad_input, tensor_from(ElementType::undefined, std::span<const int64_t>(), {0}));
}

TEST(BadInput, Values) {
  const Value none, number = Tensor::scalar(1.0f), list = Sequence{};
  REFUSED(bad_input, none.tensor());
  REFUSED(bad_input, number.sequence());
  REFUSED(bad_input, number.map());
  REFUSED(bad_input, number.optional());
  REFUSED(bad_input, list.sparse_tensor());
  for (const Value& value :
       {none, number, list, Value(Optional{}), Value(Map{}), Value(SparseTensor{}), Value(Tensor()),
        Value(Map{Tensor::of<int64_t>({1, 2}, {2}), {}}),
        Value(Sequence{{Value(), Value(Tensor())}})}) {
    for (const auto& call : std::vector<std::function<void()>>{
             [&] { (void)type_text(value); }, [&] { (void)preview(value, 0); },
             [&] { (void)preview(value, 1000); }, [&] { (void)to_json(value); },
             [&] { (void)element_count(value); }}) {
      EXPECT_FALSE(told(call).starts_with("not an Error")) << told(call);
    }
    // No model takes such a thing for a tensor of floats.
    if (value.kind() == number.kind() && value.tensor().element_type() == ElementType::float32)
      continue;
    REFUSED(bad_input, Session(square()).run({{"x", value}}));
    REFUSED(bad_input, Session(square(), {.reference = true}).run({{"x", value}}));
  }
}

TEST(BadInput, DLPack) {
  REFUSED(bad_input, dlpack::from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr)));
  REFUSED(bad_input, dlpack::from_dlpack(static_cast<dlpack::ManagedTensorVersioned*>(nullptr)));
  REFUSED(unsupported, dlpack::to_dlpack(Tensor::of<std::string>({"a"}, {1})));
  EXPECT_NE(told([] { dlpack::to_dlpack(Tensor()); }), "nothing was thrown");
  float number = 1;
  int64_t one = 1, below = -1, far = huge;
  const auto given = [&](dlpack::DLTensor tensor) {
    return told([&] {
      dlpack::ManagedTensor managed{tensor, nullptr, nullptr};
      dlpack::from_dlpack(&managed);
    });
  };
  const dlpack::DLTensor sound{&number, {1, 0}, 1, {2, 32, 1}, &one, nullptr, 0};
  EXPECT_EQ(given(sound), "nothing was thrown");
  for (const auto& change : std::vector<std::function<void(dlpack::DLTensor&)>>{
           [](auto& t) { t.data = nullptr; }, [](auto& t) { t.device.type = 2; },
           [](auto& t) { t.ndim = -1; }, [](auto& t) { t.dtype.code = 200; },
           [](auto& t) { t.dtype.bits = 31; }, [](auto& t) { t.dtype.lanes = 4; },
           [](auto& t) { t.shape = nullptr; }, [&](auto& t) { t.shape = &below; },
           [&](auto& t) { t.shape = &far; }, [&](auto& t) { t.shape = &far, t.strides = &far; }}) {
    dlpack::DLTensor tensor = sound;
    change(tensor);
    const std::string answer = given(tensor);
    EXPECT_TRUE(answer.starts_with("bad input: ") || answer.starts_with("unsupported: ")) << answer;
  }
}

TEST(BadInput, Models) {
  const ScratchFolder folder;
  REFUSED(unreadable, Model(""));
  REFUSED(unreadable, Model(folder / "none.onnx"));
  REFUSED(unreadable, Model(folder.path()));
  EXPECT_NE(told([] { Model(nullptr, 10); }), "nothing was thrown");
  REFUSED(invalid_model, Model("not a model", 11));
  REFUSED(invalid_model, Model::from_text(""));
  REFUSED(bad_input, Model::from_stream(nullptr));
  REFUSED(bad_input, Model::from_stream([](void*, size_t size) { return size + 1; }));
  REFUSED(invalid_model, Model(nullptr, 0));
  const char* version_alone = "\x08\x0a";
  REFUSED(unreadable, Model(version_alone, 2, {}, nullptr, {.operator_sets = {folder / "none"}}));
  REFUSED(unreadable, Model(version_alone, 2, {}, nullptr, {.libraries = {folder / "none.so"}}));
  // Metadata alone is a model, too.
  const Model empty(version_alone, 2);
  EXPECT_FALSE(empty.has_graph());
  REFUSED(invalid_model, empty.graph());
  EXPECT_EQ(empty.opset(), 0);
  EXPECT_FALSE(empty.metadata("any").has_value());
  EXPECT_EQ(empty.functions().size(), 0u);
  REFUSED(bad_input, empty.functions()[0]);
  REFUSED(bad_input, *ViewList<NodeView>::Iterator());
  REFUSED(invalid_model, Session(empty));
  REFUSED(invalid_model, TrainingSession(empty));
  REFUSED(invalid_model, extract(empty, {}, {}));
  REFUSED(invalid_model, optimized_text(empty));
  REFUSED(invalid_model, convert_version(empty));
  REFUSED(invalid_model, ModelEditor(empty).set_graph_name("g"));
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { (void)empty.to_text(); }, [&] { (void)empty.to_json(); },
           [&] { (void)empty.to_drawing(DrawingForm::svg); }, [&] { (void)check_model(empty); },
           [&] { (void)infer_types(empty); }, [&] { (void)model_info(empty); },
           [&] { (void)inline_functions(empty); }, [&] { (void)diff(empty, square()); },
           [&] { (void)rename(empty, {.prefix = "p"}); }, [&] { (void)merge(empty, square()); },
           [&] { (void)make_trainable(empty, {}); }, [&] { (void)with_inferred_types(empty); },
           [&] { (void)pack_model(empty, folder / "p.sdx"); }}) {
    EXPECT_FALSE(told(call).starts_with("not an Error")) << told(call);
  }

  const Model model = test::example();
  REFUSED(bad_input, model.graph().nodes()[99]);
  REFUSED(bad_input, model.graph().nodes()[0].attributes()[0]);
  REFUSED(bad_input, (*model.graph().nodes()[2].attribute("then_branch")).int_value());
  EXPECT_FALSE(model.graph().input("none").has_value());
  REFUSED(bad_input, model.for_each_node(nullptr));
  REFUSED(bad_input, model.write(nullptr));
  REFUSED(bad_input, model.write_text(nullptr));
  REFUSED(bad_input, model.draw(nullptr, DrawingForm::dot));
  REFUSED(bad_input, model.save(folder / "m.png"));
  REFUSED(unreadable, model.save(""));
  REFUSED(unreadable, model.save(folder / "none/m.onnx"));
  REFUSED(bad_input, model.save(folder / "m.onnx", {.external_data = "../w", .threshold = 0}));
  REFUSED(bad_input, model.save(folder / "m.onnx", {.external_data = "m.onnx", .threshold = 0}));
  REFUSED(bad_input, model.save(folder / "m.onnx", {.external_data = "w", .embed = true}));
  REFUSED(bad_input, model.save(folder / "m.onnx", {.external_data = "w", .alignment = 0}));
  REFUSED(unreadable, model.save_text(folder / "none/m.txt"));
  REFUSED(unreadable, model.save_drawing(folder / "none/m.svg", DrawingForm::svg));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(BadInput, Editing) {
  const Model model = test::example();
  ModelEditor editor(model);
  const std::string before = model.to_text();
  REFUSED(bad_input, editor.set_metadata("", "v"));
  REFUSED(bad_input, editor.remove_metadata("none"));
  REFUSED(bad_input, editor.set_opset_import("", 0));
  REFUSED(bad_input, editor.set_type("none", "float"));
  REFUSED(bad_input, editor.set_type("x", "nothing"));
  REFUSED(bad_input, editor.set_type("", ""));
  REFUSED(bad_input, editor.set_dimension("x", 7, 1));
  REFUSED(bad_input, editor.set_dimension("x", -9, "n"));
  REFUSED(bad_input, editor.set_dimension("x", 0, int64_t{-1}));
  REFUSED(bad_input, editor.set_dimension("none", 0, int64_t{1}));
  REFUSED(bad_input, editor.set_denotation("none", "IMAGE"));
  REFUSED(bad_input, editor.set_denotation("x", 9, "DATA_BATCH"));
  REFUSED(bad_input, editor.add_input("", "float"));
  REFUSED(bad_input, editor.add_input("x", "float"));
  REFUSED(bad_input, editor.remove_input("x"));
  REFUSED(bad_input, editor.remove_input("none"));
  REFUSED(bad_input, editor.add_output("none"));
  REFUSED(bad_input, editor.remove_output("none"));
  REFUSED(bad_input, editor.add_initializer("", ones({1})));
  REFUSED(bad_input, editor.add_initializer("w", ones({1})));
  REFUSED(bad_input, editor.add_initializer("new", Tensor()));
  REFUSED(bad_input, editor.replace_initializer("none", ones({1})));
  REFUSED(bad_input, editor.replace_initializer("w", Tensor()));
  REFUSED(bad_input, editor.remove_initializer("w"));
  REFUSED(bad_input, editor.remove_initializer("none"));
  EXPECT_FALSE(editor.has_initializer(""));
  EXPECT_EQ(editor.finish().to_text(), before);
  const ModelEditor moved = std::move(editor);
  REFUSED(bad_input, editor.finish());             // NOLINT: what is left behind
  REFUSED(bad_input, editor.set_domain("d"));      // NOLINT
  REFUSED(bad_input, editor.has_initializer(""));  // NOLINT
}

TEST(BadInput, Composing) {
  const ScratchFolder folder;
  const Model model = test::example();
  REFUSED(bad_input, extract(model, {"none"}, {"y"}));
  REFUSED(bad_input, extract(model, {}, {"none"}));
  REFUSED(bad_input, extract(model, {}, {}));
  REFUSED(bad_input, extract(model, {""}, {""}));
  REFUSED(bad_input, merge(model, model));
  REFUSED(bad_input, merge(model, square(), {.connections = {{"y", "none"}}}));
  REFUSED(bad_input, merge(model, square(), {.connections = {{"", ""}}}));
  REFUSED(bad_input, rename(model, {.values = {{"none", "n"}}}));
  REFUSED(bad_input, rename(model, {.values = {{"x", ""}}}));
  REFUSED(bad_input, rename(model, {.values = {{"x", "w"}}}));
  REFUSED(bad_input, rename(model, {.nodes = {{"none", "n"}}}));
  REFUSED(bad_input, rename(model, {.dimensions = {{"none", "n"}}}));
  REFUSED(bad_input, rename(model, {.functions = {{"none", "n"}}}));
  REFUSED(bad_input, diff(model, model, {.relative = -1}));
  REFUSED(bad_input, diff(model, model, {.absolute = nan}));
  REFUSED(bad_input, convert_version(model, {.opset = -1}));
  REFUSED(bad_input, convert_version(model, {.opset = 9999}));
  REFUSED(unreadable, infer_types(std::string()));
  REFUSED(bad_input, infer_types(model, {.sizes = {{"none", 1}}}));
  REFUSED(bad_input, infer_types(model, {.sizes = {{"batch", -1}}}));
  REFUSED(unreadable, infer_file(folder / "none", folder / "out.onnx"));
  REFUSED(unreadable, infer_in_place(folder / "none"));
  REFUSED(unreadable, model_info(folder / "none"));
  REFUSED(bad_input, model_info(model, {{"none", 1}}));
  REFUSED(unreadable, OperatorSet(folder / "none"));
  REFUSED(bad_input, OperatorSet::of_standard("none"));
  REFUSED(bad_input, OperatorSet::of_standard("", 9999));
  REFUSED(bad_input, OperatorSet::of_standard("", -1));
  REFUSED(bad_input, OperatorSet::of_standard("").save(folder / "set.png"));
  EXPECT_TRUE(operator_names("none").empty());
  EXPECT_TRUE(operator_versions("", "none").empty());
  EXPECT_FALSE(find_signature("", "Add", -1).has_value());
  EXPECT_FALSE(find_signature("", "", huge).has_value());
  REFUSED(bad_input, require_pass("none"));
  REFUSED(bad_input, optimized_text(model, {}, {.stop_after = "none"}));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(BadInput, Sessions) {
  const ScratchFolder folder;
  const Model model = square();
  REFUSED(unreadable, Session(folder / "none"));
  REFUSED(bad_input, Threads(-1));
  REFUSED(bad_input, Threads(5000));
  REFUSED(bad_input, Session(model, {.threads = -1}));
  REFUSED(bad_input, Session(model, {.memory_limit = -1}));
  REFUSED(bad_input, Session(model, {.dimensions = {{"none", 1}}}));
  REFUSED(bad_input, Session(model, {.dimensions = {{"n", -1}}}));
  REFUSED(bad_input, Session(model, {.initializers = {{"none", ones({2})}}}));
  REFUSED(bad_input, Session(model, {.initializers = {{"w", ones({3})}}}));
  REFUSED(bad_input, Session(model, {.initializers = {{"w", Value()}}}));
  REFUSED(bad_input, Session(model, {.extra_outputs = {"none"}}));
  REFUSED(bad_input, Session(model, {.processors = {-1}}));
  REFUSED(bad_input, Session(model, {.processors = {1 << 20}}));
  REFUSED(unreadable, Session(model, {.packed = folder / "none"}));
  REFUSED(unreadable, pack_model(model, folder / "none/p.sdx"));
  REFUSED(unreadable, compare_packed(model, folder / "none"));

  for (const bool reference : {false, true}) {
    Session session(model, {.threads = 1, .reference = reference});
    REFUSED(bad_input, session.run({}));
    REFUSED(bad_input, session.run({{"none", ones({1, 2})}}));
    REFUSED(bad_input, session.run({{"x", ones({1, 2})}, {"x", ones({1, 2})}}));
    REFUSED(bad_input, session.run({{"x", ones({2})}}));
    REFUSED(bad_input, session.run({{"x", ones({1, 2}, ElementType::float64)}}));
    REFUSED(out_of_memory, session.run({{"x", ones({1, 2})}}, {.memory_limit = -1}));
    REFUSED(cancelled, session.run({{"x", ones({1, 2})}},
                                   {.deadline = std::chrono::steady_clock::time_point::min()}));
    REFUSED(out_of_memory, session.run({{"x", ones({1, 2})}}, {.memory_limit = 1}));
    std::vector<Value> two(2), one(1);
    const std::vector<Value> inputs{ones({1, 2})};
    REFUSED(bad_input, session.run(inputs, two));
    REFUSED(bad_input, session.run(two, one));
    REFUSED(bad_input, session.run(std::span<const Value>(), one));
    REFUSED(bad_input, session.run_async({{"none", Value()}}).get());
    if (!reference) REFUSED(bad_input, session.plan_for({}));

    Binding binding(session);
    REFUSED(bad_input, binding.bind_input("none", ones({1, 2})));
    REFUSED(bad_input, binding.bind_output("none"));
    REFUSED(bad_input, binding.run());

    const Session moved = std::move(session);
    REFUSED(bad_input, session.inputs());                    // NOLINT: what is left behind
    REFUSED(bad_input, session.outputs());                   // NOLINT
    REFUSED(bad_input, session.run({{"x", ones({1, 2})}}));  // NOLINT
    REFUSED(bad_input, session.run(inputs, one));            // NOLINT
    REFUSED(bad_input, session.run_async({}));               // NOLINT
    REFUSED(bad_input, session.steps());                     // NOLINT
    REFUSED(bad_input, session.packed_bytes());              // NOLINT
    REFUSED(bad_input, session.arena_bytes());               // NOLINT
    EXPECT_EQ(moved.run({{"x", ones({1, 2})}}).size(), 1u);
  }
  Profile profile;
  const Profile moved = std::move(profile);
  REFUSED(bad_input, profile.steps());        // NOLINT: what is left behind
  REFUSED(bad_input, profile_json(profile));  // NOLINT
  REFUSED(bad_input, Session(model).run({{"x", ones({1, 2})}}, {.profile = &profile}));  // NOLINT
  REFUSED(bad_input, probe_machine(0));
  REFUSED(bad_input, measure_limits(-1));
}

TEST(BadInput, FilesOfValues) {
  const ScratchFolder folder;
  const Model model = square();
  const ValueDescription wanted = Session(model).inputs()[0];
  REFUSED(unreadable, read_value(folder / "none.npy"));
  REFUSED(unreadable, read_npz(folder / "none.npz"));
  REFUSED(unreadable, read_text(folder / "none"));
  REFUSED(unreadable, read_value_file(folder / "none.npy", model, wanted));
  REFUSED(unreadable, read_npz_values(folder / "none.npz", {wanted}));
  REFUSED(bad_input, write_value(folder / "a.png", ones({1})));
  REFUSED(unreadable, write_value(folder / "none/a.npy", ones({1})));
  REFUSED(bad_input, write_value(folder / "a.npy", Value()));
  REFUSED(bad_input, write_npz(folder / "a.npz", {{"a", ones({1})}, {"a", ones({1})}}));
  REFUSED(bad_input, write_npz(folder / "a.npz", {{"a", Value()}}));
  REFUSED(bad_input, write_npz(folder / "a.npz", {{"", ones({1})}}));
  const std::vector<Value> three(3);
  REFUSED(bad_input, write_output_npz(folder / "o.npz", Session(model).outputs(), three));
  REFUSED(unreadable, write_text(folder / "none/t", "t"));
  REFUSED(bad_input, value_from_text("[1, 2", wanted));
  REFUSED(bad_input, value_from_text("[[1, 2], [3]]", wanted));
  REFUSED(bad_input, refuse_unknown_sizes({{"none", 1}}, {}));
  REFUSED(bad_input, shape_for(wanted, {{"n", -1}}));
  REFUSED(bad_input, random_value(wanted, {-1, 2}, 0));
  REFUSED(bad_input, random_value(wanted, {1, 2}, 0, RandomRange{2, 1}));
  REFUSED(bad_input, random_value(wanted, {1, 2}, 0, RandomRange{nan, 1}));
  REFUSED(unsupported, ones_value({}, {1}));
  REFUSED(unsupported, rank_answers(Tensor(), 1));
  REFUSED(bad_input, rank_answers(Tensor::of<std::string>({"a"}, {1}), 1));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(BadInput, Training) {
  const ScratchFolder folder;
  const Model model = square();
  REFUSED(invalid_model, TrainingSession(model));
  REFUSED(unreadable, TrainingSession(folder / "none"));
  const auto made = [&](TrainableOptions options) { return make_trainable(model, options); };
  const TrainableOptions mse{.loss = Loss::mse};
  const auto with = [&](const std::function<void(TrainableOptions&)>& change) {
    TrainableOptions options = mse;
    change(options);
    return told([&] { made(options); });
  };
  EXPECT_EQ(with([](auto&) {}), "nothing was thrown");
  for (const auto& change : std::vector<std::function<void(TrainableOptions&)>>{
           [](auto& o) { o.output = "none"; }, [](auto& o) { o.learning_rate = -1; },
           [](auto& o) { o.learning_rate = nan; }, [](auto& o) { o.accumulate = 0; },
           [](auto& o) { o.clip_norm = -1; }, [](auto& o) { o.clip_value = nan; },
           [](auto& o) { o.beta1 = 1; }, [](auto& o) { o.epsilon = -1; },
           [](auto& o) { o.weight_decay = -1; }, [](auto& o) { o.train = {"none"}; },
           [](auto& o) { o.freeze = {"*"}; }, [](auto& o) { o.lora = {{.rank = 0}}; },
           [](auto& o) { o.lora = {{.pattern = "none"}}; },
           [](auto& o) { o.schedule = {.kind = Schedule::Kind::linear, .steps = 0}; },
           [](auto& o) { o.schedule = {.warmup = -1}; },
           [](auto& o) { o.precision = Precision::float16, o.loss_scale = 0; },
           [](auto& o) { o.loss = Loss::huber, o.huber_delta = -1; },
           [](auto& o) { o.loss = Loss::softmax_cross_entropy, o.class_axis = 9; }}) {
    const std::string answer = with(change);
    EXPECT_TRUE(answer.starts_with("bad input: ")) << answer;
  }
  REFUSED(bad_input, loss_named(""));
  REFUSED(bad_input, optimizer_named("none"));
  REFUSED(bad_input, schedule_named("linear:"));
  REFUSED(bad_input, precision_named("int8"));
  REFUSED(bad_input, lora_named("x:y"));
  REFUSED(bad_input, augmentation_named("crop:-1"));
  REFUSED(bad_input, merge_lora(model));
  REFUSED(unreadable, make_trainable(TrainingArtifacts{}));
  REFUSED(unreadable, make_trainable(TrainingArtifacts::in(folder.path())));
  REFUSED(unreadable, make_trainable(model, mse, folder / "none/t.onnx"));
  EXPECT_EQ(last_checkpoint(folder / "none").path, "");

  TrainingSession session(made(mse));
  const std::vector<NamedValue> batch{{"x", ones({4, 2})}, {"target", ones({4, 2})}};
  REFUSED(bad_input, session.step(batch, 9));
  REFUSED(bad_input, session.step_inputs(9));
  REFUSED(bad_input, session.step_outputs(9));
  REFUSED(bad_input, session.step({}));
  REFUSED(bad_input, session.step({{"x", ones({4, 2})}, {"target", ones({3, 2})}}));
  REFUSED(bad_input, session.infer({{"none", ones({1})}}));
  REFUSED(bad_input, session.set_state({{"none", ones({1})}}));
  REFUSED(bad_input, session.set_state({{"w", ones({3})}}));
  REFUSED(bad_input, session.set_state({{"w", ones({2})}, {"w", ones({2})}}));
  REFUSED(bad_input, session.set_state({{"w", Value()}}));
  EXPECT_EQ(session.metadata("none"), "");
  REFUSED(unreadable, session.save(folder / "none/t.onnx"));
  REFUSED(bad_input, session.save(folder / "t.onnx", {.merge_lora = true}));
  REFUSED(bad_input, TrainingData({}));
  REFUSED(bad_input, TrainingData({{"x", Value()}}));
  REFUSED(bad_input, TrainingData({{"x", ones({2})}, {"y", ones({3})}}));
  REFUSED(bad_input, TrainingData({{"x", ones({0})}}));
  REFUSED(bad_input, TrainingData({{"x", ones({2})}, {"x", ones({2})}}));
  REFUSED(unreadable, TrainingData::read(folder / "none.npz", session));
  const TrainingData data(batch);
  const std::vector<int64_t> outside{4}, below{-1};
  REFUSED(bad_input, data.batch(outside));
  REFUSED(bad_input, data.batch(below));
  for (const auto& change : std::vector<std::function<void(FitOptions&)>>{
           [](auto& o) { o.epochs = -1; }, [](auto& o) { o.batch = 0; },
           [](auto& o) { o.which = 9; }, [](auto& o) { o.every = -1; }, [](auto& o) { o.keep = 0; },
           [](auto& o) { o.patience = -1; }, [](auto& o) { o.patience = 1; },
           [](auto& o) { o.first_step = -1; }, [](auto& o) { o.augment.crop = -1; },
           [](auto& o) { o.augment.flip = true; }}) {
    FitOptions options;
    change(options);
    REFUSED(bad_input, fit(session, data, options));
  }
  REFUSED(bad_input, measure(session, data, 0));
  REFUSED(bad_input, measure(session, data, 32, 9));
  EXPECT_EQ(session.turn(), 0u);
  const TrainingSession moved = std::move(session);
  REFUSED(bad_input, session.algorithm_count());        // NOLINT: what is left behind
  REFUSED(bad_input, session.step(batch));              // NOLINT
  REFUSED(bad_input, session.state());                  // NOLINT
  REFUSED(bad_input, session.save(folder / "t.onnx"));  // NOLINT
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace sardonyx

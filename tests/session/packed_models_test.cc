// Files of packed weights: results do not depend on them, and no file is trusted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include "base/bytes.h"
#include "sardonyx/packing.h"
#include "sardonyx/session.h"
#include "scratch_folder.h"
#include "session/model.h"
#include "session/packed_file.h"
#include "session/packed_weights.h"

#ifndef _WIN32
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#endif

namespace sardonyx {
namespace {

namespace fs = std::filesystem;

// "float[2,3] name = {1, -2, ...}"
std::string tensor_text(std::mt19937& random, const std::string& type, const std::string& name,
                        const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape) count *= dim;
  std::vector<int> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<int>(random() % (type == "uint8" ? 256 : 127)) -
                     (type == "uint8" ? 0 : 63));
  return fmt::format("{}{} {} = {{{}}}", type, to_string(shape), name, fmt::join(values, ","));
}

// One node of each family that packs.
std::string model_text(int seed = 1) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<std::string> list;
  const auto add = [&](const std::string& type, const std::string& name, const Shape& shape) {
    list.push_back(tensor_text(random, type, name, shape));
  };
  add("float", "conv_w", {8, 3, 3, 3});
  add("float", "depthwise_w", {8, 1, 3, 3});
  add("float", "up_w", {8, 4, 2, 2});
  add("float", "matrix", {64, 80});
  add("float16", "half", {80, 48});
  add("float", "factor", {48, 1});
  add("float", "folded", {48, 32});
  add("float", "lstm_w", {1, 64, 32});
  add("float", "lstm_r", {1, 64, 16});
  add("uint8", "bytes", {16, 24});
  add("int8", "signed_bytes", {24, 40});
  add("uint8", "byte_conv", {8, 3, 3, 3});
  list.push_back("uint8 zero = {7}");
  list.push_back("float scale = {0.5}");
  std::string text = R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N,3,8,8] image, float[M,64] rows, float[T,B,32] steps, uint8[M,16] small, uint8[N,3,8,8] pixels)
  => (up, y, product, sequence, quantized, byte_image) <)";
  text += fmt::format("{}", fmt::join(list, ",\n"));
  return text + R"(> {
  c = Conv<pads = [1,1,1,1]>(image, conv_w)
  r = Relu(c)
  d = Conv<group = 8, pads = [1,1,1,1]>(r, depthwise_w)
  up = ConvTranspose<strides = [2,2]>(d, up_w)
  a = MatMul(rows, matrix)
  ah = Cast<to = 10>(a)
  bh = MatMul(ah, half)
  y = Cast<to = 1>(bh)
  scaled = Mul(folded, factor)
  product = MatMul(y, scaled)
  sequence, h, cell = LSTM<hidden_size = 16>(steps, lstm_w, lstm_r)
  sums = MatMulInteger(small, bytes, zero, zero)
  sums_float = Cast<to = 1>(sums)
  sums_byte = QuantizeLinear(sums_float, scale, zero)
  quantized = MatMulInteger(sums_byte, signed_bytes)
  byte_image = QLinearConv<pads = [1,1,1,1]>(pixels, scale, zero, byte_conv, scale, zero, scale, zero)
})";
}

std::vector<NamedValue> inputs() {
  std::mt19937 random(3);
  const auto floats = [&](Shape shape) {
    Tensor made(ElementType::float32, std::move(shape));
    for (float& v : made.mutable_elements<float>()) v = static_cast<float>(random() % 100) / 64 - 1;
    return made;
  };
  const auto bytes = [&](Shape shape) {
    Tensor made(ElementType::uint8, std::move(shape));
    for (uint8_t& v : made.mutable_elements<uint8_t>()) v = static_cast<uint8_t>(random());
    return made;
  };
  return {{"image", floats({2, 3, 8, 8})},
          {"rows", floats({3, 64})},
          {"steps", floats({4, 2, 32})},
          {"small", bytes({3, 16})},
          {"pixels", bytes({2, 3, 8, 8})}};
}

std::string bits_of(const std::vector<Value>& values) {
  std::string bits;
  for (const Value& value : values) {
    bits += to_string(value.tensor().shape());
    bits.append(static_cast<const char*>(value.tensor().data()), value.tensor().byte_size());
  }
  return bits;
}
std::string run(const Session& session) { return bits_of(session.run(inputs())); }

std::string bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
void write_bytes(const std::string& path, const std::string& bytes) {
  test::write_bytes(path, bytes);
}

std::string message_of(ErrorCode code, const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}
#define EXPECT_REFUSED(code, words, ...)                                \
  do {                                                                  \
    const std::string message = message_of(code, [&] { __VA_ARGS__; }); \
    EXPECT_NE(message.find(words), std::string::npos) << message;       \
  } while (false)

class PackedModels : public testing::Test {
 protected:
  PackedModels() { Model::from_text(model_text()).save(model_); }

  std::string reference() const { return run(Session(model_)); }

  test::ScratchFolder folder_;
  const std::string model_ = folder_ / "model.onnx";
  const std::string packed_ = folder_ / "model.sdx";
};

TEST_F(PackedModels, GiveTheSameBits) {
  const PackedModel made = pack_model(Model(model_), packed_);
  EXPECT_EQ(made.bytes, fs::file_size(packed_));
  EXPECT_GE(made.forms, 11u);
  const Session session(model_, {.packed = packed_});
  EXPECT_EQ(session.packed_bytes(), 0);  // all from the file
  EXPECT_EQ(run(session), reference());
  // Of a model in memory, constants are known by what they hold.
  const std::string bytes = bytes_of_file(model_);
  const Session memory(Model(bytes.data(), bytes.size()), {.packed = packed_});
  EXPECT_EQ(memory.packed_bytes(), 0);
  EXPECT_EQ(run(memory), reference());
}

TEST_F(PackedModels, HaveTheSameBytesWheneverTheyAreMade) {
  pack_model(Model(model_), packed_, {.threads = 1});
  const Model model(model_);
  const Session other(model);  // whose packs are not those of the file
  run(other);
  pack_model(model, folder_ / "again.sdx", {.threads = 3});
  EXPECT_EQ(bytes_of_file(packed_), bytes_of_file(folder_ / "again.sdx"));
}

TEST_F(PackedModels, OtherOptionsPackWhatTheyNeedBesides) {
  pack_model(Model(model_), packed_);
  const Session plain(model_, {.reference = true, .packed = packed_});
  EXPECT_EQ(plain.packed_bytes(), 0);
  const Session exact(model_, {.exact = true, .packed = packed_});
  EXPECT_EQ(run(exact), run(Session(model_, {.exact = true})));
  const Tensor matrix = Tensor::of<float>(std::vector<float>(64 * 80, 3), {64, 80});
  const SessionOptions other{.initializers = {{"matrix", matrix}}};
  SessionOptions with = other;
  with.packed = packed_;
  const Session replaced(model_, with);
  EXPECT_GT(replaced.packed_bytes(), 0);
  EXPECT_EQ(run(replaced), run(Session(model_, other)));
}

TEST_F(PackedModels, TakeNothingOfAMemoryLimit) {
  Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N, 512] x) => (y) {
  size = Constant<value_ints = [512, 512]>()
  ones = ConstantOfShape<value = float {0.5}>(size)
  y = MatMul(x, ones)
})")
      .save(model_);
  pack_model(Model(model_), packed_);
  const auto limited = [&](const std::string& packed) {
    return Session(model_, {.memory_limit = 2'000'000, .packed = packed});
  };
  // The folded constant has a megabyte, and so has its packed form.
  EXPECT_NO_THROW(limited(packed_));
  EXPECT_EQ(limited(packed_).packed_bytes(), 0);
  EXPECT_GE(Session(model_).packed_bytes(), 512 * 512 * 4);
  EXPECT_THROW(limited(""), Error);
}

TEST_F(PackedModels, AreComparedWithWhatPackingGives) {
  pack_model(Model(model_), packed_);
  const PackedComparison same = compare_packed(Model(model_), packed_);
  EXPECT_TRUE(same.differences.empty());
  // A byte of the data, which no checksum holds.
  std::string bytes = bytes_of_file(packed_);
  const auto file = PackedFile::open(packed_);
  const PackedForm form = file->form(0);
  const size_t size = form.parts[0].byte_size();
  const std::string elements(static_cast<const char*>(form.parts[0].data()), size);
  const size_t at = bytes.find(elements);
  ASSERT_NE(at, std::string::npos);
  bytes[at + size - 1] ^= 1;
  write_bytes(packed_, bytes);
  const PackedComparison changed = compare_packed(Model(model_), packed_);
  EXPECT_EQ(changed.forms, same.forms);
  ASSERT_EQ(changed.differences.size(), 1u);
  EXPECT_NE(changed.differences[0].what.find(fmt::format("byte {} of part 0", size - 1)),
            std::string::npos)
      << changed.differences[0].what;
  // One that lacks forms.
  const auto whole = PackedFile::open(packed_);
  write_packed(packed_, whole->made_for(), {});
  EXPECT_EQ(compare_packed(Model(model_), packed_).differences.size(), same.forms + 1);
}

#ifndef _WIN32
TEST_F(PackedModels, AnotherProcessTakesThem) {
  const std::string expected = reference();
  pack_model(Model(model_), packed_);
  const pid_t child = fork();
  if (child == 0) {
    const Session session(model_, {.threads = 1, .packed = packed_});
    _exit(session.packed_bytes() == 0 && run(session) == expected ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

TEST_F(PackedModels, OfExternalDataAreKnownByPlace) {
  const std::string external = folder_ / "external.onnx";
  Model(model_).save(external, {.external_data = "weights.bin", .threshold = 1});
  pack_model(Model(external), packed_);
  const Session session(external, {.packed = packed_});
  EXPECT_EQ(session.packed_bytes(), 0);
  EXPECT_EQ(run(session), reference());
  // Another weight where the fingerprint does not look: the file's time says so.
  std::string bytes = bytes_of_file(folder_ / "weights.bin");
  const float before = 5;
  size_t at = 0;
  while (at % 4 != 0 || std::memcmp(bytes.data() + at, &before, 4) != 0) ++at;
  const float after = -7;
  std::memcpy(bytes.data() + at, &after, 4);
  write_bytes(folder_ / "weights.bin", bytes);
  fs::last_write_time(folder_ / "weights.bin",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  const std::string changed = run(Session(external));
  EXPECT_NE(changed, reference());
  try {
    EXPECT_EQ(run(Session(external, {.packed = packed_})), changed);
  } catch (const Error& error) {  // small tensors are part of the structure
    EXPECT_EQ(error.code(), ErrorCode::bad_input);
  }
}

TEST_F(PackedModels, OfDataBroughtInLaterServeToo) {
  const std::string external = folder_ / "external.onnx";
  Model(model_).save(external, {.external_data = "weights.bin", .threshold = 1});
  pack_model(Model(external, {.load_external_data = false}), packed_);
  const Session session(external, {.packed = packed_});
  EXPECT_EQ(session.packed_bytes(), 0);
  EXPECT_EQ(run(session), reference());
}

// A tensor that the fingerprint sees a part of.
std::string wide_text(int changed) {
  std::vector<int> values(256 * 256, 1);
  values[300] = changed;
  return fmt::format(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N,256] x) => (y) <float[256,256] w = {{{}}}> {{ y = MatMul(x, w) }})",
                     fmt::join(values, ","));
}

std::string run_wide(const Session& session) {
  Tensor x(ElementType::float32, {1, 256});
  for (int64_t i = 0; i < 256; ++i) x.mutable_elements<float>()[static_cast<size_t>(i)] = 1;
  return bits_of(session.run({{"x", x}}));
}

TEST_F(PackedModels, OfAModelThatChangedAreKnownByContent) {
  Model::from_text(wide_text(1)).save(model_);
  pack_model(Model(model_), packed_);
  // The same file at another time, and a copy.
  fs::last_write_time(model_, fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(Session(model_, {.packed = packed_}).packed_bytes(), 0);
  fs::copy_file(model_, folder_ / "copy.onnx");
  EXPECT_EQ(Session(folder_ / "copy.onnx", {.packed = packed_}).packed_bytes(), 0);
  // Another element, where no sample is.
  Model::from_text(wide_text(5)).save(model_);
  const std::string changed = run_wide(Session(model_));
  const Session session(model_, {.packed = packed_});
  EXPECT_EQ(session.packed_bytes(), Session(model_).packed_bytes());
  EXPECT_EQ(run_wide(session), changed);
  const PackedComparison comparison = compare_packed(Model(model_), packed_);
  EXPECT_EQ(comparison.differences.size(), 1u);
}

TEST_F(PackedModels, ThatAreForSomethingElseAreRefused) {
  pack_model(Model(model_), packed_);
  const auto open = [&] { Session(model_, {.packed = packed_}); };
  const auto file = PackedFile::open(packed_);
  const auto made_for = [&](const std::function<void(PackedFor&)>& change) {
    PackedFor other = file->made_for();
    change(other);
    std::vector<PackedForm> forms;
    for (size_t i = 0; i < file->form_count(); ++i) forms.push_back(file->form(i));
    write_packed(packed_, other, forms);
  };
  made_for([](PackedFor&) {});
  EXPECT_NO_THROW(open());
  made_for([](PackedFor& f) { f.target.processor ^= 1; });
  EXPECT_REFUSED(ErrorCode::bad_input, "it was packed for ", open());
  made_for([](PackedFor& f) { f.target.version = "0.0.1"; });
  EXPECT_REFUSED(ErrorCode::bad_input, "it was made by version 0.0.1 of Sardonyx, this is ",
                 open());
  made_for([](PackedFor& f) { f.target.build[1] ^= 1; });
  EXPECT_REFUSED(ErrorCode::bad_input, "it was made by another build of ", open());
  made_for([](PackedFor& f) { f.model.structure[0] ^= 1; });
  EXPECT_REFUSED(ErrorCode::bad_input, "it was made of another model", open());
  fs::remove(packed_);
  EXPECT_REFUSED(ErrorCode::unreadable, "model.sdx: cannot open", open());
  EXPECT_REFUSED(ErrorCode::bad_input, "is the model", pack_model(Model(model_), model_));
  EXPECT_REFUSED(ErrorCode::bad_input, "reference",
                 pack_model(Model(model_), packed_, {.reference = true}));
  EXPECT_REFUSED(ErrorCode::unreadable, "there is no folder",
                 pack_model(Model(model_), folder_ / "none/model.sdx"));
}

// --- The file ------------------------------------------------------------------------------------

uint64_t number_at(const std::string& bytes, size_t at) {
  uint64_t value = 0;
  for (size_t i = 0; i < 8; ++i)
    value |= static_cast<uint64_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

void put_hash(std::string& bytes, size_t at, const ContentHash& hash) {
  for (size_t i = 0; i < 16; ++i)
    bytes[at + i] = static_cast<char>(hash[i / 8] >> (8 * (i % 8)) & 255);
}

// Makes the checksums right again.
void seal(std::string& bytes) {
  const size_t size = std::min<uint64_t>(number_at(bytes, 32), bytes.size() - 256);
  const std::string_view rest = std::string_view(bytes).substr(256);
  put_hash(bytes, 144, content_hash(rest.substr(0, size)));
  const size_t graphs = std::min<uint64_t>(number_at(bytes, 160), rest.size() - size);
  put_hash(bytes, 184, content_hash(rest.substr(size, graphs)));
  put_hash(bytes, 240, content_hash(std::string_view(bytes).substr(0, 240)));
}

std::shared_ptr<const PackedFile> read(const std::string& bytes) {
  return PackedFile::read(Bytes::copy_of(std::as_bytes(std::span(bytes))), "file.sdx");
}

// Looks at every byte that the file gives out.
unsigned sum_of(const PackedFile& file) {
  unsigned sum = 0;
  for (size_t i = 0; i < file.form_count(); ++i) {
    for (const Tensor& part : file.form(i).parts) {
      const auto* bytes = static_cast<const unsigned char*>(part.data());
      EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % 64, 0u);
      for (size_t k = 0; k < part.byte_size(); ++k) sum += bytes[k];
    }
  }
  return sum;
}

TEST_F(PackedModels, FilesCutAnywhereAreRefused) {
  pack_model(Model(model_), packed_);
  const std::string whole = bytes_of_file(packed_);
  const size_t data = number_at(whole, 48);
  EXPECT_EQ(data % 4096, 0u);
  EXPECT_NO_THROW(read(whole));
  for (size_t size = 0; size <= data; ++size)
    EXPECT_THROW(read(whole.substr(0, size)), Error) << size;
  EXPECT_THROW(read(whole.substr(0, whole.size() - 1)), Error);
  EXPECT_THROW(read(whole + '\0'), Error);
  // The same where the header agrees with the size.
  for (size_t size = 256; size < data; size += 8) {
    std::string cut = whole.substr(0, size);
    for (size_t i = 0; i < 8; ++i) cut[16 + i] = static_cast<char>(size >> (8 * i) & 255);
    seal(cut);
    EXPECT_THROW(read(cut), Error) << size;
  }
}

TEST_F(PackedModels, FilesWithAnyByteChangedAreRefused) {
  pack_model(Model(model_), packed_);
  const std::string whole = bytes_of_file(packed_);
  const size_t end = 256 + number_at(whole, 32) + number_at(whole, 160);
  for (size_t i = 0; i < end; ++i) {
    std::string changed = whole;
    changed[i] ^= static_cast<char>(1 << (i % 8));
    EXPECT_THROW(read(changed), Error) << i;
    // Whoever makes the checksums right gets an error, or views that lie in the file.
    seal(changed);
    try {
      sum_of(*read(changed));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unreadable) << error.what();
    }
  }
}

TEST_F(PackedModels, NumbersThatOverflowAreRefused) {
  pack_model(Model(model_), packed_);
  const std::string whole = bytes_of_file(packed_);
  const size_t end = 256 + number_at(whole, 32);
  const auto with = [&](size_t at, uint64_t value) {
    std::string changed = whole;
    for (size_t i = 0; i < 8; ++i) changed[at + i] = static_cast<char>(value >> (8 * i) & 255);
    seal(changed);
    return changed;
  };
  for (size_t at = 16; at + 8 <= end; at += 8) {
    if ((at >= 56 && at < 160) || (at >= 184 && at < 256)) continue;  // what it is for, checksums
    for (const uint64_t value :
         {UINT64_MAX, UINT64_MAX - 63, uint64_t{INT64_MAX}, uint64_t{1} << 62, uint64_t{1} << 32,
          static_cast<uint64_t>(whole.size()), static_cast<uint64_t>(whole.size()) + 64}) {
      try {
        sum_of(*read(with(at, value)));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::unreadable) << error.what();
      }
    }
  }
  EXPECT_REFUSED(ErrorCode::unreadable, "no file of packed weights", read("text"));
  EXPECT_REFUSED(ErrorCode::unreadable, "no file of packed weights", read(""));
  EXPECT_REFUSED(ErrorCode::unreadable, "of format 2", read(with(8, (uint64_t{256} << 32) | 2)));
}

// A form whose table says other sizes than a kernel needs is not taken.
TEST_F(PackedModels, FormsOfOtherSizesAreNotTaken) {
  pack_model(Model(model_), packed_);
  const auto file = PackedFile::open(packed_);
  std::vector<PackedForm> forms;
  for (size_t i = 0; i < file->form_count(); ++i) {
    PackedForm form = file->form(i);
    Tensor& part = form.parts[0];
    const int64_t count = part.size() - 1;
    part = Tensor::view(part.element_type(), {count}, part.data(),
                        static_cast<size_t>(byte_size(part.element_type(), count)), part.owner());
    forms.push_back(form);
  }
  const std::string expected = reference();
  write_packed(folder_ / "short.sdx", file->made_for(), forms);
  const Session session(model_, {.packed = folder_ / "short.sdx"});
  EXPECT_EQ(session.packed_bytes(), Session(model_).packed_bytes());
  EXPECT_EQ(run(session), expected);
}

TEST_F(PackedModels, WritersDoNotDisturbEachOther) {
  pack_model(Model(model_), packed_);
  const auto file = PackedFile::open(packed_);
  std::vector<PackedForm> forms;
  for (size_t i = 0; i < file->form_count(); ++i) forms.push_back(file->form(i));
  std::vector<std::thread> writers;
  std::atomic<bool> done = false;
  for (int i = 0; i < 2; ++i) {
    writers.emplace_back([&] {
      for (int k = 0; k < 20; ++k) write_packed(packed_, file->made_for(), forms);
    });
  }
  std::thread reader([&] {
    while (!done) EXPECT_EQ(PackedFile::open(packed_)->form_count(), forms.size());
  });
  for (std::thread& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_EQ(folder_.files(), (std::vector<std::string>{"model.onnx", "model.sdx"}));
}

// --- The cache -----------------------------------------------------------------------------------

class PackedCache : public PackedModels {
 protected:
  Session session(SessionOptions options = {}) const {
    options.cache_folder = cache_;
    return Session(model_, options);
  }
  std::vector<std::string> cached() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(cache_)) names.push_back(entry.path().string());
    return names;
  }

  const std::string cache_ = folder_ / "cache/of/models";
};

TEST_F(PackedCache, IsFilledBySessionsAndServesTheNext) {
  const std::string expected = reference();
  const Session first = session();
  EXPECT_GT(first.packed_bytes(), 0);
  EXPECT_EQ(run(first), expected);
  ASSERT_EQ(cached().size(), 1u);
  EXPECT_TRUE(fs::path(cached()[0]).filename().string().starts_with("model-"));
  const auto written = fs::last_write_time(cached()[0]);
  const Session second = session();
  EXPECT_EQ(second.packed_bytes(), 0);
  EXPECT_EQ(run(second), expected);
  EXPECT_EQ(fs::last_write_time(cached()[0]), written);
  // It is what `pack_model` writes.
  pack_model(Model(model_), packed_);
  EXPECT_EQ(bytes_of_file(packed_), bytes_of_file(cached()[0]));
}

TEST_F(PackedCache, GetsWhatOtherOptionsNeed) {
  session();
  const auto size = fs::file_size(cached()[0]);
  const Tensor matrix = Tensor::of<float>(std::vector<float>(64 * 80, 3), {64, 80});
  const SessionOptions other{.initializers = {{"matrix", matrix}}};
  EXPECT_GT(session(other).packed_bytes(), 0);
  EXPECT_GT(fs::file_size(cached()[0]), size);
  EXPECT_EQ(session(other).packed_bytes(), 0);
  EXPECT_EQ(session().packed_bytes(), 0);
}

TEST_F(PackedCache, FollowsTheModel) {
  run(session());
  Model::from_text(model_text(2)).save(model_);
  const std::string changed = reference();
  const Session stale = session();
  EXPECT_GT(stale.packed_bytes(), 0);
  EXPECT_EQ(run(stale), changed);
  EXPECT_EQ(session().packed_bytes(), 0);
  EXPECT_EQ(cached().size(), 1u);
  // A change that only the time of the file tells.
  Model::from_text(wide_text(1)).save(model_);
  run_wide(session());
  Model::from_text(wide_text(5)).save(model_);
  EXPECT_EQ(run_wide(session()), run_wide(Session(model_)));
  EXPECT_EQ(run_wide(session()), run_wide(Session(model_)));
}

TEST_F(PackedCache, WithUnsoundFilesMakesThemAnew) {
  session();
  const std::string path = cached()[0], whole = bytes_of_file(path);
  const std::string expected = reference();
  std::string flipped = whole;
  flipped[300] ^= 1;
  for (const std::string& bytes : {std::string(), std::string("no"), whole.substr(0, 100),
                                   whole.substr(0, whole.size() / 2), flipped}) {
    write_bytes(path, bytes);
    EXPECT_EQ(run(session()), expected);
    EXPECT_EQ(bytes_of_file(path), whole);
  }
  // Neither a folder nor a pipe in its place is an error.
  fs::remove(path);
  fs::create_directory(path);
  EXPECT_EQ(run(session()), expected);
  fs::remove(path);
#ifndef _WIN32
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(run(session()), expected);
#endif
}

TEST_F(PackedCache, ThatCannotBeWrittenIsNoError) {
  const std::string expected = reference();
  write_bytes(folder_ / "file", "");
  for (const std::string& folder : {folder_ / "file/below", std::string("/proc/none")}) {
    std::vector<Warning> told;
    const Model model(model_, {.warn = [&](const Warning& one) { told.push_back(one); }});
    const Session session(model, {.cache_folder = folder});
    EXPECT_EQ(run(session), expected);
    ASSERT_EQ(told.size(), 1u);  // once, however many runs there are
    EXPECT_TRUE(told[0].place.starts_with(folder)) << told[0].place;
    EXPECT_NE(told[0].message.find("can't be written"), std::string::npos) << told[0].message;
  }
}

#ifndef _WIN32
TEST_F(PackedCache, LeavesNothingWhereAFileMayNotGrow) {
  const std::string expected = reference();
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{8192, 8192};
    setrlimit(RLIMIT_FSIZE, &limit);
    const Session limited(model_, {.threads = 1, .cache_folder = cache_});
    _exit(run(limited) == expected ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(cached().empty());
}
#endif

TEST_F(PackedCache, ServesModelsInMemory) {
  const std::string bytes = bytes_of_file(model_), expected = reference();
  for (const bool cached : {false, true}) {
    const Session session(Model(bytes.data(), bytes.size()), {.cache_folder = cache_});
    EXPECT_EQ(session.packed_bytes() == 0, cached);
    EXPECT_EQ(run(session), expected);
  }
}

// Ranks that sizes decide: plans are made by runs.
TEST_F(PackedCache, IsFilledByPlansThatRunsMake) {
  Model::from_text(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[N, C] x) => (y) <float[4, 8] w = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32}, int64 one = {1}> {
  shape = Shape<start = 0, end = 1>(x)
  ones = Constant<value_ints = [1]>()
  is_one = Equal(shape, ones)
  squeezed = If(is_one) <
    then_branch = t () => (a) { zero = Constant<value_ints = [0]>() a = Squeeze(x, zero) },
    else_branch = e () => (b) { b = Identity(x) }>
  y = MatMul(squeezed, w)
})")
      .save(model_);
  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {1, 4});
  std::vector<std::string> results;
  for (const bool again : {false, true}) {
    const Session made = session();
    results.push_back(bits_of(made.run({{"x", x}})));
    EXPECT_EQ(made.packed_bytes() == 0, again);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], bits_of(Session(model_).run({{"x", x}})));
}

TEST_F(PackedCache, ManySessionsAtATimeShareIt) {
  const std::string expected = reference();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 3; ++k) EXPECT_EQ(run(session({.threads = 1})), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cached().size(), 1u);
  // And of one model.
  const Model model(model_);
  const Session one(model, {.cache_folder = cache_}), two(model, {.cache_folder = cache_});
  EXPECT_EQ(run(one), expected);
  EXPECT_EQ(run(two), expected);
}

}  // namespace
}  // namespace sardonyx

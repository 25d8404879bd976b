#include "wire/read.h"

#include <algorithm>
#include <array>

#include "base/fail.h"
#include "base/os.h"
#include "wire/ort_model.h"
#include "wire/proto_reader.h"

namespace sardonyx::wire {
namespace {

struct Signature {
  size_t offset;
  std::string_view bytes;
  std::string_view meaning;
};

constexpr std::array signatures = {
    Signature{0, "version https://git-lfs",
              "a git-lfs pointer; fetch the file itself with 'git lfs pull'"},
    Signature{
        0, "PK\3\4",
        "a zip archive (a PyTorch checkpoint, an .npz, or a packed model); a PyTorch model is "
        "exported with torch.onnx.export, a packed one is unpacked first"},
    Signature{0, "\x1f\x8b", "a gzip archive; unpack it first"},
    Signature{
        0, "\x89HDF",
        "an HDF5 file (a Keras model); Keras exports ONNX with model.export, tf2onnx converts it"},
    Signature{0, "\x93NUMPY", "a NumPy array"},
    Signature{0, "GGUF", "a GGUF model, weights for llama.cpp without a graph"},
    Signature{4, "TFL3", "a TensorFlow Lite model; tf2onnx converts it"},
    Signature{4, "ORTM", "a model in ONNX Runtime's own format that is cut off or damaged"},
    Signature{0, "\x80\x02",
              "a Python pickle (a PyTorch checkpoint); export the model with torch.onnx.export"},
    Signature{0, "\x80\x04",
              "a Python pickle; export the model with its framework (torch.onnx.export, skl2onnx)"},
    Signature{0, "\x89PNG", "a PNG image"},
    Signature{0, "\xff\xd8\xff", "a JPEG image"},
    Signature{0, "%PDF", "a PDF document"},
    Signature{0,
              "\x7f"
              "ELF",
              "a program"},
    Signature{8, "{\"", "a safetensors file, weights without a graph"},
};

bool is_text(std::string_view bytes) {
  const std::string_view start = bytes.substr(0, 512);
  return std::none_of(start.begin(), start.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  });
}

// A message of a field of type bytes at the beginning of `bytes`, which has this tag; what follows
// its length, empty where that is not so. Only for messages of less than 256 MB.
std::string_view first_field(std::string_view bytes, char tag) {
  if (bytes.size() < 2 || bytes[0] != tag) return {};
  size_t length = 0;
  for (size_t i = 1; i < std::min<size_t>(bytes.size(), 5); ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    length |= static_cast<size_t>(byte & 0x7f) << (7 * (i - 1));
    if (byte < 0x80)
      return length <= bytes.size() ? bytes.substr(i + 1, length) : bytes.substr(i + 1);
  }
  return {};
}

// TensorFlow's messages have no signature: GraphDef begins with nodes, each with a name (field 1)
// and an operator (2); SavedModel with its version 1 and a graph with information about it (1).
std::string_view tensorflow_kind(std::string_view bytes) {
  constexpr std::string_view advice_saved =
      "a TensorFlow SavedModel; tf2onnx converts it (tf2onnx.convert --saved-model FOLDER)";
  constexpr std::string_view advice_graph =
      "a TensorFlow graph (GraphDef); tf2onnx converts it (tf2onnx.convert --graphdef FILE)";
  if (const auto node = first_field(bytes, '\x0a'); !node.empty()) {
    const auto name = first_field(node, '\x0a');
    if (name.empty() || name.size() + 2 >= node.size() || name.size() >= 0x80) return {};
    return first_field(node.substr(2 + name.size()), '\x12').empty() ? "" : advice_graph;
  }
  if (!bytes.starts_with(std::string_view("\x08\x01\x12", 3))) return {};
  // Of an ONNX model, this would be the name of the tool that made it.
  const auto graph = first_field(bytes.substr(2), '\x12');
  const bool is_message = graph.starts_with('\x0a') && !is_text(graph.substr(0, 64));
  return is_message ? advice_saved : std::string_view();
}

// What a file that is no model seems to be; empty where nothing is recognised.
std::string_view seems_to_be(std::string_view bytes) {
  if (bytes.empty()) return "empty";
  if (const std::string_view kind = tensorflow_kind(bytes); !kind.empty()) return kind;
  for (const Signature& s : signatures) {
    if (bytes.size() > s.offset && bytes.substr(s.offset).starts_with(s.bytes)) return s.meaning;
  }
  if (!is_text(bytes)) return {};
  std::string lower(bytes.substr(0, 512));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const size_t start = lower.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  const std::string_view text = std::string_view(lower).substr(std::min(start, lower.size()));
  if (text.starts_with("<!doctype") || text.starts_with("<html"))
    return "an HTML page; the download went wrong";
  if (text.starts_with("<?xml")) return "an XML document";
  if (text.starts_with("<") && text.find("ir_version") < 40)
    return "a model in ONNX's textual syntax, whose file is named .onnxtxt";
  if (text.starts_with("ir_version:"))
    return "a model in protobuf's text format, whose file is named .textproto";
  if (text.starts_with("{") || text.starts_with("[")) return "JSON, whose file is named .json";
  return "text";
}

template <class M>
M read_message(const Bytes& bytes, std::string_view root, int descriptor = -1) {
  M message;
  ProtoReader(bytes, root, descriptor).read(message);
  return message;
}

void refuse_operator_set(std::string_view bytes) {
  if (bytes.starts_with("\n\x09ONNXOPSET"))
    fail(ErrorCode::unreadable,
         "is not an ONNX model; it seems to be an operator set document, which 'sardonyx opset' "
         "shows and --operator-set uses");
}

void refuse_other_kinds(std::string_view bytes) {
  refuse_operator_set(bytes);
  const std::string_view kind = seems_to_be(bytes);
  if (!kind.empty()) fail(ErrorCode::unreadable, "is not an ONNX model; it seems to be {}", kind);
}

// Looks at the bytes by itself only where they are no model: that touches pages of a mapping.
ir::Model read_model_bytes(const Bytes& bytes, int descriptor = -1) {
  ir::Model model;
  try {
    model = read_message<ir::Model>(bytes, "ModelProto", descriptor);
  } catch (const Error&) {
    if (is_ort_model(bytes.text())) return read_ort_model(bytes);
    refuse_other_kinds(bytes.text());
    throw;
  }
  // A document's fields have numbers that a model's have, too, but the first is of another type.
  if (model.unknown.bytes.starts_with('\n')) refuse_operator_set(bytes.text());
  if (!model.graph && model.opset_imports.empty()) {
    refuse_other_kinds(bytes.text());
    if (!model.ir_version)
      fail(ErrorCode::unreadable,
           "is not an ONNX model: it has neither a graph nor ir_version nor opset_import");
  }
  return model;
}

}  // namespace

ir::Model read_model(const std::string& path) { return read_model(MappedFile(path)); }

ir::Model read_model(const MappedFile& file) {
  try {
    ir::Model model = read_model_bytes(file.bytes(), file.is_mapped() ? file.descriptor() : -1);
    model.path = file.path();
    model.folder = os::folder_of(file.path());
    return model;
  } catch (const Error& error) {
    throw error.within(file.path());
  }
}

ir::Model read_model(const Bytes& bytes, std::string folder) {
  try {
    ir::Model model = read_model_bytes(bytes);
    model.folder = std::move(folder);
    return model;
  } catch (const Error& error) {
    if (error.location().empty()) throw error.within("the model in memory");
    throw;
  }
}

ir::OperatorSet read_operator_set(const Bytes& bytes) {
  auto set = read_message<ir::OperatorSet>(bytes, "OperatorSetProto");
  if (set.magic != ir::operator_set_magic) {
    fail(ErrorCode::unreadable,
         "is no operator set document: its first field must be '{}'; found '{}'; 'sardonyx info' "
         "shows models",
         ir::operator_set_magic, set.magic.substr(0, 20));
  }
  return set;
}

ir::TensorProto read_tensor(const Bytes& bytes) {
  return read_message<ir::TensorProto>(bytes, "TensorProto");
}

}  // namespace sardonyx::wire

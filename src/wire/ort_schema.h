// Numbers of fields in ONNX Runtime's schema of models, one namespace for each table. Internal to
// wire.
#pragma once

#include <cstdint>

namespace sardonyx::wire::ort_schema {

namespace session {
constexpr int version = 0, model = 1;
}
namespace model {
constexpr int ir_version = 0, opset_imports = 1, producer_name = 2, producer_version = 3,
              domain = 4, version = 5, doc_string = 6, graph = 7, graph_doc_string = 8,
              metadata = 9;
}
namespace opset {
constexpr int domain = 0, version = 1;
}
namespace entry {
constexpr int key = 0, value = 1;
}
namespace graph {
constexpr int initializers = 0, values = 1, nodes = 2, inputs = 5, outputs = 6,
              sparse_initializers = 7;
}
namespace node {
constexpr int name = 0, doc_string = 1, domain = 2, op_type = 5, type = 6, provider = 7, inputs = 8,
              outputs = 9, attributes = 10, implicit_inputs = 12;
constexpr int fused = 1;  // a type
}  // namespace node
namespace attribute {
constexpr int name = 0, doc_string = 1, type = 2, f = 3, i = 4, s = 5, t = 6, g = 7, floats = 8,
              ints = 9, strings = 10, tensors = 11, graphs = 12;
}
namespace tensor {
constexpr int name = 0, doc_string = 1, dims = 2, data_type = 3, raw_data = 4, string_data = 5,
              external_offset = 6;
}
namespace sparse {
constexpr int values = 0, indices = 1, dims = 2;
}
namespace value {
constexpr int name = 0, doc_string = 1, type = 2;
}
namespace type {
constexpr int denotation = 0, kind = 1, of_kind = 2;
enum class Kind : uint8_t { none = 0, tensor = 1, sequence = 2, map = 3 };
}  // namespace type
namespace tensor_type {
constexpr int element = 0, shape = 1;
}
namespace sequence_type {
constexpr int element = 0;
}
namespace map_type {
constexpr int key = 0, value = 1;
}
namespace shape {
constexpr int dims = 0;
}
namespace dimension {
constexpr int value = 0, denotation = 1;
}
namespace size {
constexpr int kind = 0, number = 1, name = 2;
enum class Kind : int8_t { unknown = 0, number = 1, name = 2 };
}  // namespace size

}  // namespace sardonyx::wire::ort_schema

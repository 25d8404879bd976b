// The functions of OpenVINO's C interface that the benchmarks call, found by name in the shared
// library of its Python package (libopenvino_c.so). The numbers of element types are those of
// OpenVINO 2026.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace openvino {

// Opaque to us.
struct Core;
struct Model;
struct CompiledModel;
struct InferRequest;
struct Tensor;
struct Port;

inline constexpr int wrong_argument = -14;  // a code that functions return

struct Shape {
  int64_t rank = 0;
  int64_t* dims = nullptr;
};
struct Version {
  const char* build = nullptr;
  const char* description = nullptr;
};

class Library {
 public:
  explicit Library(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
    find(get_version, "ov_get_openvino_version");
    find(free_version, "ov_version_free");
    find(last_error, "ov_get_last_err_msg");
    find(free_text, "ov_free");
    find(create_core, "ov_core_create");
    find(free_core, "ov_core_free");
    find(read_model, "ov_core_read_model");
    find(free_model, "ov_model_free");
    find(compile_model, "ov_core_compile_model");
    find(free_compiled, "ov_compiled_model_free");
    find(count_outputs, "ov_compiled_model_outputs_size");
    find(get_output_port, "ov_compiled_model_output_by_index");
    find(get_port_name, "ov_port_get_any_name");
    find(free_port, "ov_output_const_port_free");
    find(create_request, "ov_compiled_model_create_infer_request");
    find(free_request, "ov_infer_request_free");
    find(set_tensor, "ov_infer_request_set_tensor");
    find(infer, "ov_infer_request_infer");
    find(get_output, "ov_infer_request_get_output_tensor_by_index");
    find(wrap_tensor, "ov_tensor_create_from_host_ptr");
    find(get_shape, "ov_tensor_get_shape");
    find(get_type, "ov_tensor_get_element_type");
    find(get_data, "ov_tensor_data");
    find(get_bytes, "ov_tensor_get_byte_size");
    find(free_tensor, "ov_tensor_free");
    find(free_shape, "ov_shape_free");
  }

  int (*get_version)(Version*);
  void (*free_version)(Version*);
  const char* (*last_error)();
  void (*free_text)(const char*);
  int (*create_core)(Core**);
  void (*free_core)(Core*);
  int (*read_model)(const Core*, const char* path, const char* weights, Model**);
  void (*free_model)(Model*);
  // Pairs of names and values follow, `arguments` texts in all.
  int (*compile_model)(const Core*, const Model*, const char* device, size_t arguments,
                       CompiledModel**, ...);
  void (*free_compiled)(CompiledModel*);
  int (*count_outputs)(const CompiledModel*, size_t*);
  int (*get_output_port)(const CompiledModel*, size_t, Port**);
  int (*get_port_name)(const Port*, char**);
  void (*free_port)(Port*);
  int (*create_request)(const CompiledModel*, InferRequest**);
  void (*free_request)(InferRequest*);
  int (*set_tensor)(InferRequest*, const char* name, const Tensor*);
  int (*infer)(InferRequest*);
  int (*get_output)(const InferRequest*, size_t, Tensor**);
  int (*wrap_tensor)(int type, Shape, void*, Tensor**);
  int (*get_shape)(const Tensor*, Shape*);
  int (*get_type)(const Tensor*, int*);
  int (*get_data)(const Tensor*, void**);
  int (*get_bytes)(const Tensor*, size_t*);
  void (*free_tensor)(Tensor*);
  int (*free_shape)(Shape*);

  // Throws with the last message where a code is none of success.
  void require(int code) const {
    if (code == 0) return;
    const char* const text = last_error();
    const std::string message = text != nullptr ? text : "OpenVINO's error " + std::to_string(code);
    free_text(text);
    throw std::runtime_error(message);
  }

 private:
  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(handle_, name));
    if (function == nullptr)
      throw std::runtime_error(std::string("OpenVINO's library has no ") + name);
  }

  void* handle_;
};

}  // namespace openvino

#include "sardonyx/about.h"

#include "base/cpu.h"
#include "formats/image.h"
#include "sardonyx/session.h"
#include "schema/schema.h"

namespace sardonyx {

About about() {
  About about;
  about.version = version();
  const schema::Release& release = schema::releases().back();
  about.onnx_release = release.name;
  about.ir_version = release.ir_version;
  about.opset = release.onnx_opset;
  about.ml_opset = release.ml_opset;
  about.training_opset = release.training_opset;
  const schema::Signature* before = nullptr;  // versions of one operator stand together
  for (const schema::Signature& signature : schema::all_signatures()) {
    if (signature.extra) continue;
    if (!before || before->name != signature.name || before->domain != signature.domain)
      ++about.operators;
    before = &signature;
  }
  about.instruction_set = name_of(instruction_set());
  about.images = formats::has_image_support();
  return about;
}

}  // namespace sardonyx

// Training models of what ONNX Runtime's training API (onnxruntime-training, until 1.19) works
// with.
//
//   const auto artifacts = sardonyx::TrainingArtifacts::in("artifacts");
//   sardonyx::TrainingSession session(sardonyx::make_trainable(artifacts));
//
#pragma once

#include <string>
#include <vector>

#include "sardonyx/trainable.h"

#pragma GCC visibility push(default)  // what a shared library gives to others

namespace sardonyx {

// The files that `generate_artifacts` of onnxruntime.training makes.
struct TrainingArtifacts {
  std::string training_model = {};   // computes the loss and its gradients
  std::string eval_model = {};       // computes the loss as the network infers
  std::string optimizer_model = {};  // AdamWOptimizer or SGDOptimizerV2, and InplaceClipGradNorm
  std::string checkpoint = {};       // parameters, the optimizer's averages where it was saved so

  // training_model.onnx, eval_model.onnx, optimizer_model.onnx and checkpoint of a folder.
  static TrainingArtifacts in(const std::string& folder);
};

struct ArtifactOptions {
  // Outputs of the model for inference: values of eval_model. Empty: its outputs beside the loss;
  // where it has none, the value that the loss compares with the target.
  std::vector<std::string> outputs = {};
  double learning_rate = 0;  // 0: the checkpoint's, else 0.001
};

// A training model (IR, "Training Related Information") of them. Its main graph infers as
// eval_model does, without the loss; its first algorithm computes what training_model and
// optimizer_model do in one step: the loss, gradients, and the update; its second one measures the
// loss as eval_model does. Parameters begin with the checkpoint's values, the optimizer with its
// averages. Gradients are those of the training model's forward part: one Gradient node takes the
// place of its backward part. Throws Error: (unreadable), (invalid_model), (bad_input) where the
// files do not fit each other or the options, (unsupported) for other optimizers, and where
// something has no gradient here.
Model make_trainable(const TrainingArtifacts& artifacts, const ArtifactOptions& options = {},
                     TrainableReport* report = nullptr);
// The same into a file. `external_data`: as in TrainingSaveOptions.
TrainableReport make_trainable(const TrainingArtifacts& artifacts, const ArtifactOptions& options,
                               const std::string& path, const std::string& external_data = {});

}  // namespace sardonyx

#pragma GCC visibility pop

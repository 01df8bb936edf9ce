// request/completion_request.h: the body of a text completion: one Request a prompt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "deepinfer/request.h"
#include "request/body_fields.h"

namespace deepinfer {

inline constexpr size_t kMaxPromptsInBatch = 1024;

struct CompletionRequest {
  struct Prompt {
    std::string text;
    std::vector<int32_t> ids;  // of a prompt given so
    bool is_text = false;
    // Of an echo: what each id shows. BOS, which a client did not write, shows nothing.
    std::vector<std::string> pieces;
  };

  AnswerStyle style;
  std::vector<Prompt> prompts;
  std::vector<Request> requests;  // after Encode: one a prompt
  // The old shape: alternatives a token. 0 shows the tokens alone.
  std::optional<int32_t> logprobs;
  bool wants_prompt_logprobs = false;  // vLLM's

  // Errors: as the readers of body_fields.h and structured_fields.h; kInvalidArgument.
  Status Read(FieldReader& body, const ServedModel& model, const ApiOptions& options,
              std::string_view tenant);
  // Errors: as EncodeTextPrompt, EncodeInfillPrompt, CheckTokenIds and FitLength.
  Status Encode(const ServedModel& model);
  // All prompts of a batch use one seed: the client's, else this.
  void SetSeed(uint64_t drawn);
  // What goes to the engine; what writing the answer does not need is dropped here.
  std::vector<Request> TakeRequests();

 private:
  Request shared_;
  std::optional<std::string> suffix_;
};

}  // namespace deepinfer

// Offline inference through the public C++ API: several prompts at once, answers as they come.
//
//   offline_inference MODEL_DIR ["prompt" ...]
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "deepinfer/engine.h"

namespace {

struct Answer {
  std::string prompt;
  std::string text;
};

// A checkpoint without a tokenizer takes and gives ids; the example then shows the ids.
std::string TextOf(const deepinfer::TokensEvent& tokens, bool has_tokenizer) {
  if (has_tokenizer) return tokens.text;
  std::string text;
  for (const int32_t id : tokens.ids) text += std::to_string(id) + " ";
  return text;
}

int Fail(const deepinfer::Error& error) {
  std::fprintf(stderr, "offline_inference: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: offline_inference MODEL_DIR [\"prompt\" ...]\n");
    return 2;
  }
  auto engine = deepinfer::Engine::Load({.model = argv[1]});
  if (!engine.ok()) return Fail(engine.error());
  const bool has_tokenizer = (*engine)->info().has_tokenizer;

  std::vector<std::string> prompts(argv + 2, argv + argc);
  if (prompts.empty()) prompts = {"Hello", "The capital of France is", "1 + 1 ="};
  std::map<deepinfer::RequestId, Answer> answers;
  for (const std::string& prompt : prompts) {
    deepinfer::Request request{
        .max_tokens = 32, .sampling = {.temperature = 0.8, .top_p = 0.95}, .seed = 1};
    request.prompt_ids = {0};  // BOS alone, unless text can be read
    if (has_tokenizer) {
      auto ids = (*engine)->EncodeText(prompt);
      if (!ids.ok()) return Fail(ids.error());
      request.prompt_ids = *std::move(ids);
    }
    auto id = (*engine)->Submit(std::move(request));
    if (!id.ok()) return Fail(id.error());
    answers[*id].prompt = prompt;
  }

  while ((*engine)->HasWork()) {
    for (const deepinfer::Event& event : (*engine)->Step()) {
      if (const auto* tokens = std::get_if<deepinfer::TokensEvent>(&event)) {
        answers[tokens->request].text += TextOf(*tokens, has_tokenizer);
      } else if (const auto* failure = std::get_if<deepinfer::FailureEvent>(&event)) {
        return Fail(failure->error);
      }
    }
  }
  for (const auto& [id, answer] : answers) {
    std::printf("prompt: %s\nanswer: %s\n\n", answer.prompt.c_str(), answer.text.c_str());
  }
  return 0;
}

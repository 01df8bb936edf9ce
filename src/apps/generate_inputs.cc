#include "apps/generate_inputs.h"

#include <set>

#include "apps/terminal.h"
#include "base/log.h"
#include "tokens/conversation.h"

namespace deepinfer {
namespace {

// Reads one kind of input after another into `inputs`.
class InputReader {
 public:
  InputReader(const GenerateFlags& flags, Disk& disk, const LoadedEngine& engine)
      : flags_(flags), disk_(disk), engine_(engine) {}

  StatusOr<std::vector<GenerateInput>> Read() {
    DI_ASSIGN_OR_RETURN(defaults_, flags_.sampling.ToRequest());
    DI_ASSIGN_OR_RETURN(defaults_.structured, flags_.structured.Read(disk_));
    auto thinking = ParseEffort(flags_.effort);
    if (!thinking.ok()) return Annotate(thinking.status(), "--effort");
    thinking_ = *thinking;
    for (const std::string& prompt : flags_.prompts) AddPrompt(prompt);
    for (const std::string& ids : flags_.token_ids) {
      DI_ASSIGN_OR_RETURN(std::vector<int32_t> parsed, ParseTokenIds(ids, "--token-ids"));
      ParsedRequest request{.request = defaults_};
      request.request.prompt_ids = std::move(parsed);
      inputs_.push_back({.request = std::move(request)});
    }
    if (!flags_.messages.empty()) DI_RETURN_IF_ERROR(AddMessages());
    if (flags_.input == "-") {
      StdinLines lines;
      for (int64_t number = 1; auto line = lines.Next(); ++number) AddLine(number, *line);
    } else if (!flags_.input.empty()) {
      DI_RETURN_IF_ERROR(AddFile());
    }
    if (!ignored_.empty()) {
      LogWarning("input: keys without effect: ", Join(ignored_, ", "));
    }
    return std::move(inputs_);
  }

 private:
  void AddPrompt(const std::string& prompt) {
    JsonValue root = JsonValue::Object();
    if (flags_.chat) {
      JsonValue message = JsonValue::Object();
      message.Set("role", JsonValue::String("user"));
      message.Set("content", JsonValue::String(prompt));
      root.Set("messages", {.kind = JsonValue::Kind::kArray, .items = {std::move(message)}});
    } else {
      root.Set("prompt", JsonValue::String(prompt));
    }
    inputs_.push_back({.request = ReadRequest(root, defaults_, thinking_, engine_)});
  }

  // An array of messages, or an object as in a JSONL line.
  Status AddMessages() {
    DI_ASSIGN_OR_RETURN(const std::string text, disk_.ReadText(flags_.messages));
    auto root = ParseJson(text);
    if (!root.ok()) return Annotate(root.status(), flags_.messages);
    if (root->IsArray()) {
      JsonValue object = JsonValue::Object();
      object.Set("messages", *std::move(root));
      root = std::move(object);
    }
    AddObject(*root, StrCat(flags_.messages, ": "), 0);
    return OkStatus();
  }

  Status AddFile() {
    DI_ASSIGN_OR_RETURN(const std::string text, disk_.ReadText(flags_.input));
    int64_t number = 0;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      AddLine(++number, std::string_view(text).substr(begin, end - begin));
      begin = end + 1;
    }
    return OkStatus();
  }

  void AddLine(int64_t number, std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return;
    const std::string where = StrCat("line ", number, ": ");
    const auto root = ParseJson(line);
    if (root.ok()) return AddObject(*root, where, number);
    inputs_.push_back(
        {.line = number,
         .request = MakeStatus(root.status().code(), StrCat(where, MessageOf(root.status())))});
  }

  void AddObject(const JsonValue& root, const std::string& where, int64_t line) {
    GenerateInput input{.line = line, .request = ReadRequest(root, defaults_, thinking_, engine_)};
    for (const std::string_view key : {"id", "custom_id"}) {
      if (const JsonValue* id = root.Find(key)) input.id = *id;
    }
    if (input.request.ok()) {
      const auto& keys = input.request->ignored_keys;
      ignored_.insert(keys.begin(), keys.end());
    } else {
      const Status status = input.request.status();
      input.request = MakeStatus(status.code(), StrCat(where, MessageOf(status)));
    }
    inputs_.push_back(std::move(input));
  }

  const GenerateFlags& flags_;
  Disk& disk_;
  const LoadedEngine& engine_;
  Request defaults_;
  Thinking thinking_;
  std::vector<GenerateInput> inputs_;
  std::set<std::string> ignored_;
};

}  // namespace

void GenerateFlags::AddTo(OptionSet& options) {
  options.Add({.flag = "prompt", .help = "text to continue: BOS and the text as it stands"},
              &prompts);
  options.Add({.flag = "chat", .help = "each --prompt is a user's turn to be answered"}, &chat);
  options.Add({.flag = "messages",
               .help = "a conversation: a JSON array of messages, or an object with them",
               .unit = "FILE"},
              &messages);
  options.Add({.flag = "token-ids", .help = "a prompt as token ids: 1,2,3", .unit = "IDS"},
              &token_ids);
  options.Add({.flag = "input",
               .help = "JSONL, one object a line with prompt, prompt_token_ids or messages and any "
                       "of max_tokens, temperature, seed, stop, ...; - is stdin",
               .unit = "FILE"},
              &input);
  options.Add({.flag = "output", .help = "where the answers go; - is stdout", .unit = "FILE"},
              &output);
  options.Add(
      {.flag = "json", .help = "one JSON object an answer instead of text; on with --input"},
      &json);
  options.Add(
      {.flag = "effort",
       .help = "how long to think in a chat: none, low (50), high (75), max (100) or 1..100"},
      &effort);
  sampling.AddTo(options);
  structured.AddTo(options);
  engine.AddTo(options);
}

Status GenerateFlags::Check() const {
  if (prompts.empty() && token_ids.empty() && messages.empty() && input.empty()) {
    return InvalidArgument(
        "nothing to answer: give --prompt TEXT, --messages FILE, --token-ids IDS or --input FILE");
  }
  return OkStatus();
}

StatusOr<std::vector<GenerateInput>> ReadInputs(const GenerateFlags& flags, Disk& disk,
                                                const LoadedEngine& engine) {
  return InputReader(flags, disk, engine).Read();
}

}  // namespace deepinfer

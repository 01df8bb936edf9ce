// `deepinfer generate`: prompts in, answers out, in the order of the prompts.
#include <algorithm>
#include <map>
#include <memory>
#include <span>

#include "apps/answer_collector.h"
#include "apps/answer_view.h"
#include "apps/command.h"
#include "apps/generate_inputs.h"
#include "apps/result_output.h"
#include "apps/terminal.h"
#include "base/log.h"
#include "base/progress.h"

namespace deepinfer {
namespace {

// One input on its way to its answer.
struct Item {
  GenerateInput input;
  AnswerCollector answers{1};
  std::optional<Error> error;

  bool done() const { return error || answers.done(); }
};

// A chat's answer for a person: thinking only where it can be dimmed.
class ChatText {
 public:
  ChatText(const AnswerTokens& tokens, bool in_thinking, bool terminal, AnswerView::Write write)
      : parser_(tokens, in_thinking),
        view_({.dim_thinking = terminal, .show_thinking = terminal}, std::move(write)) {}

  Status Feed(std::span<const int32_t> ids, std::span<const std::string> pieces) {
    for (size_t i = 0; i < ids.size(); ++i) {
      DI_RETURN_IF_ERROR(Show(parser_.Feed(ids[i], pieces[i])));
    }
    return OkStatus();
  }
  Status End() {
    DI_RETURN_IF_ERROR(Show(parser_.Finish()));
    return view_.End();
  }

 private:
  Status Show(const std::vector<AnswerDelta>& deltas) {
    for (const AnswerDelta& delta : deltas) DI_RETURN_IF_ERROR(view_.Show(delta));
    return OkStatus();
  }

  AnswerParser parser_;
  AnswerView view_;
};

class GenerateRun {
 public:
  GenerateRun(const GenerateFlags& flags, LoadedEngine& engine, ResultOutput& output, Clock& clock)
      : flags_(flags), engine_(engine), output_(output), clock_(clock) {}

  StatusOr<int> Run(std::vector<GenerateInput> inputs) {
    Prepare(std::move(inputs));
    SubmitMore();
    if (item_of_.empty()) streaming_ = false;
    const MonotonicTime start = clock_.Now();
    if (!streaming_) {
      progress_ = std::make_unique<Progress>("answering", "prompts", std::ssize(items_), clock_);
    }
    Interrupts interrupts;
    DI_RETURN_IF_ERROR(WriteReady());
    while (engine_.core().HasWork() || (next_item_ < items_.size() && !interrupted_)) {
      if (interrupts.seen() && !interrupted_) {
        interrupted_ = true;
        for (const auto& [id, item] : item_of_) engine_.core().Cancel(id);
      }
      if (!interrupted_) SubmitMore();
      for (const Event& event : engine_.core().Step()) DI_RETURN_IF_ERROR(Take(event));
      if (!interrupted_) DI_RETURN_IF_ERROR(WriteReady());
    }
    progress_.reset();
    if (chat_stream_ != nullptr) DI_RETURN_IF_ERROR(chat_stream_->End());
    if (streaming_) DI_RETURN_IF_ERROR(output_.Write("\n"));
    if (interrupted_) {
      PrintError("deepinfer generate: interrupted");
      return kExitInterrupted;
    }
    DI_RETURN_IF_ERROR(output_.Commit());
    Report(clock_.Now() - start);
    return num_failed_ > 0 ? kExitFailed : kExitOk;
  }

 private:
  void Prepare(std::vector<GenerateInput> inputs) {
    items_.reserve(inputs.size());
    const bool one = inputs.size() == 1;
    if (engine_.tokenizer() != nullptr) {
      if (auto tokens = AnswerTokens::Of(*engine_.tokenizer()); tokens.ok())
        answer_tokens_ = *tokens;
    }
    for (GenerateInput& input : inputs) {
      Item& item = items_.emplace_back(Item{.input = std::move(input)});
      if (!item.input.request.ok()) {
        item.error = ToError(item.input.request.status());
        continue;
      }
      const int32_t num_choices = item.input.request->request.num_choices;
      item.answers = AnswerCollector(num_choices);
      streaming_ = one && num_choices == 1 && !flags_.json && flags_.output == "-";
      if (streaming_ && IsChat(item)) {
        chat_stream_ = std::make_unique<ChatText>(
            *answer_tokens_, item.input.request->in_thinking, StdoutIsTerminal(),
            [this](std::string_view text) { return output_.Write(text); });
      }
    }
  }

  // As many as the engine lets wait.
  void SubmitMore() {
    for (; next_item_ < items_.size(); ++next_item_) {
      Item& item = items_[next_item_];
      if (item.error) continue;
      // Every choice waits. More of them than ever may are refused, with the reason.
      const int32_t most = engine_.core().options().max_waiting;
      const int32_t wanted = std::min(item.input.request->request.num_choices, most);
      if (engine_.core().queue_room() < wanted) return;
      const auto id = engine_.core().Submit(std::move(item.input.request->request));
      if (id.ok()) {
        item_of_[*id] = &item;
      } else {
        item.error = ToError(id.status());
        if (item.input.line > 0) {
          item.error->message = StrCat("line ", item.input.line, ": ", item.error->message);
        }
      }
    }
  }

  Status Take(const Event& event) {
    const RequestId id = std::visit([](const auto& e) { return e.request; }, event);
    Item& item = *item_of_.at(id);
    item.answers.Take(event);
    if (item.answers.failure() && !item.error) item.error = item.answers.failure();
    const auto* tokens = std::get_if<TokensEvent>(&event);
    if (tokens == nullptr) return OkStatus();
    num_tokens_ += std::ssize(tokens->ids);
    if (chat_stream_ != nullptr) return chat_stream_->Feed(tokens->ids, tokens->pieces);
    return streaming_ ? output_.Write(TextOf(*tokens)) : OkStatus();
  }

  bool IsChat(const Item& item) const { return answer_tokens_ && item.input.request->is_chat; }

  // Without a tokenizer the ids are the text.
  std::string TextOf(const TokensEvent& tokens) const {
    if (engine_.tokenizer() != nullptr) return tokens.text;
    return StrCat(tokens.first_idx > 0 ? " " : "", Join(tokens.ids, " "));
  }

  std::string TextOf(const Item& item, const ChoiceAnswer& choice) const {
    if (engine_.tokenizer() == nullptr) return Join(choice.ids, " ");
    if (!IsChat(item)) return choice.Text();
    std::string text;
    ChatText chat(*answer_tokens_, item.input.request->in_thinking, false,
                  [&text](std::string_view piece) {
                    text += piece;
                    return OkStatus();
                  });
    CHECK(chat.Feed(choice.ids, choice.pieces).ok() && chat.End().ok());  // nothing to fail
    return text;
  }

  // Writes every answer whose predecessors are written.
  Status WriteReady() {
    for (; num_written_ < items_.size() && items_[num_written_].done(); ++num_written_) {
      const Item& item = items_[num_written_];
      num_failed_ += item.error ? 1 : 0;
      if (item.error && !flags_.json) {
        PrintError(StrCat("deepinfer generate: ", item.error->message));
      }
      if (!streaming_) DI_RETURN_IF_ERROR(output_.Write(flags_.json ? Json(item) : Text(item)));
      if (progress_ != nullptr) progress_->Add(1);
    }
    return OkStatus();
  }

  std::string Json(const Item& item) const {
    JsonValue out = JsonValue::Object();
    out.Set("index", JsonNumber(static_cast<int64_t>(num_written_)));
    if (item.input.line > 0) out.Set("line", JsonNumber(item.input.line));
    if (!item.input.id.IsNull()) out.Set("id", item.input.id);
    if (item.error) {
      out.Set("error", ErrorJson(*item.error));
    } else {
      const ParsedRequest& parsed = *item.input.request;
      JsonValue answer = AnswerJson(item.answers, {.tokenizer = engine_.tokenizer(),
                                                   .is_chat = parsed.is_chat,
                                                   .in_thinking = parsed.in_thinking});
      for (JsonMember& member : answer.members) out.Set(member.key, std::move(member.value));
    }
    return DumpJson(out) + "\n";
  }

  // A line of its own for every answer; a failed one keeps its place with an empty line.
  std::string Text(const Item& item) const {
    if (item.error) return items_.size() > 1 ? "\n" : "";
    std::string text;
    for (const ChoiceAnswer& choice : item.answers.choices()) {
      text += TextOf(item, choice);
      text += "\n";
    }
    return text;
  }

  // An answer that was cut looks like a short one, and inside its thinking like none.
  void WarnOfCuts() const {
    int64_t num_cut = 0;
    for (const Item& item : items_) {
      if (item.error) continue;
      for (const ChoiceAnswer& choice : item.answers.choices()) {
        num_cut += choice.finish && choice.finish->reason == FinishReason::kLength ? 1 : 0;
      }
    }
    const bool any_chat = std::any_of(items_.begin(), items_.end(), [this](const Item& item) {
      return item.input.request.ok() && IsChat(item);
    });
    if (num_cut == 0 || !any_chat) return;
    LogWarning(num_cut, num_cut == 1 ? " answer was" : " answers were",
               " cut at --max-tokens, perhaps while still thinking (--effort none does not think)");
  }

  void Report(Duration time) const {
    if (!flags_.json) WarnOfCuts();
    if (items_.size() == 1 && !items_[0].error && !flags_.sampling.request.seed) {
      LogInfo("seed ", items_[0].answers.ready().seed, " (--seed repeats this answer)");
    }
    const double seconds = Seconds(time);
    LogInfo(
        num_tokens_, " tokens in ", seconds, " s, ",
        seconds > 0 ? static_cast<double>(num_tokens_) / seconds : 0, " tokens/s",
        num_failed_ > 0 ? StrCat("; ", num_failed_, " of ", items_.size(), " prompts failed") : "");
    LogDebug(engine_.placed_weights().CountsText());
  }

  const GenerateFlags& flags_;
  LoadedEngine& engine_;
  ResultOutput& output_;
  Clock& clock_;
  std::vector<Item> items_;
  std::map<RequestId, Item*> item_of_;
  std::unique_ptr<Progress> progress_;
  size_t next_item_ = 0;  // to be submitted
  size_t num_written_ = 0;
  int64_t num_failed_ = 0, num_tokens_ = 0;
  bool streaming_ = false;                     // the one answer's text goes out as it comes
  std::optional<AnswerTokens> answer_tokens_;  // none: the tokenizer knows no chat
  std::unique_ptr<ChatText> chat_stream_;      // the one answer is a chat's
  bool interrupted_ = false;
};

}  // namespace

StatusOr<int> RunGenerateCommand(const CommandContext& context) {
  GenerateFlags flags;
  OptionSet options(
      "generate",
      "Produces text from prompts. Results go to stdout, all else to stderr. Exit code "
      "1: some prompts failed.");
  flags.AddTo(options);
  if (const auto code = ParseOptions(options, context)) return *code;
  if (const Status status = flags.Check(); !status.ok()) {
    PrintError(StrCat("deepinfer generate: ", MessageOf(status)));
    return kExitUsage;
  }
  if (options.SourceOf("json") == OptionSource::kDefault) flags.json = !flags.input.empty();
  DI_ASSIGN_OR_RETURN(ResultOutput output, ResultOutput::Open(context.disk, flags.output));
  DI_ASSIGN_OR_RETURN(const auto engine, LoadWithProgress(flags.engine, context));
  DI_ASSIGN_OR_RETURN(std::vector<GenerateInput> inputs, ReadInputs(flags, context.disk, *engine));
  return GenerateRun(flags, *engine, output, context.clock).Run(std::move(inputs));
}

}  // namespace deepinfer

#include "scenario.h"

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "schedule/testing/scheduler_driver.h"
#include "statement.h"

namespace deepinfer::scenarios {
namespace {

using testing::DriverEnd;
using testing::DriverRequest;
using testing::DriverSequence;
using testing::kRealReplayShape;
using testing::MakePrompt;
using testing::SchedulerDriver;

constexpr int kMaxSteps = 100'000;  // of `run`

class Scenario {
 public:
  Status Run(Statement& statement);
  // After the last statement: everything ends, and nothing stays held.
  Status Finish();

 private:
  using Verb = Status (Scenario::*)(Statement&);

  Status Engine(Statement& statement);
  Status Add(Statement& statement);
  Status Refuse(Statement& statement);
  Status Cancel(Statement& statement);
  Status Preempt(Statement& statement);
  Status Fail(Statement& statement);
  Status Damage(Statement& statement);
  Status Clear(Statement& statement);
  Status Wait(Statement& statement);
  Status Step(Statement& statement);
  Status Steps(Statement& statement);
  Status RunAll(Statement& statement);
  Status Free(Statement& statement);

  StatusOr<DriverRequest> RequestOf(Statement& statement);
  StatusOr<std::vector<int32_t>> PromptOf(Statement& statement);
  StatusOr<int> HandleOf(const std::string& name) const;
  StatusOr<int> OnlyName(const Statement& statement) const;
  std::string Name(int handle) const { return names_[static_cast<size_t>(handle)]; }
  std::string Name(SequenceId id) const { return Name(driver_->HandleOf(id)); }
  std::vector<std::string> Copies(const StepPlan& plan) const;
  std::vector<std::string> Rows(const StepPlan& plan) const;
  std::vector<std::string> Ends();

  std::unique_ptr<SchedulerDriver> driver_;
  std::vector<std::string> names_;  // by handle
  std::map<std::string, int32_t> tenants_;
};

Status Compare(const Statement& statement, const std::string& found) {
  if (!statement.expected || *statement.expected == found) return OkStatus();
  return InvalidArgument("expected '", *statement.expected, "', found '", found, "'");
}

// ---- what is told

Status Scenario::Run(Statement& statement) {
  static const std::map<std::string, Verb> kVerbs = {
      {"engine", &Scenario::Engine}, {"add", &Scenario::Add},         {"refuse", &Scenario::Refuse},
      {"cancel", &Scenario::Cancel}, {"fail", &Scenario::Fail},       {"clear", &Scenario::Clear},
      {"damage", &Scenario::Damage}, {"preempt", &Scenario::Preempt}, {"wait", &Scenario::Wait},
      {"step", &Scenario::Step},     {"steps", &Scenario::Steps},     {"run", &Scenario::RunAll},
      {"free", &Scenario::Free},
  };
  const auto verb = kVerbs.find(statement.verb);
  if (verb == kVerbs.end()) {
    std::vector<std::string> known;
    for (const auto& [name, fn] : kVerbs) known.push_back(name);
    return InvalidArgument("expected one of ", Join(known, ", "), "; found '", statement.verb, "'");
  }
  const bool makes_engine = statement.verb == "engine";
  if (makes_engine == (driver_ != nullptr)) {
    return InvalidArgument("expected 'engine' first and once, found '", statement.verb, "'");
  }
  return (this->*verb->second)(statement);
}

Status Scenario::Engine(Statement& statement) {
  SchedulerOptions options = {.max_model_len = 1 << 20, .shape = kRealReplayShape};
  CacheSizes sizes;
  const std::pair<const char*, int32_t*> numbers[] = {
      {"pages", &sizes.num_pages},
      {"host", &sizes.num_host_pages},
      {"saves", &sizes.num_saves},
      {"slots", &sizes.num_slots},
      {"seqs", &options.max_num_seqs},
      {"tokens", &options.max_num_batched_tokens},
      {"drafts", &options.num_drafts},
      {"queue", &options.max_waiting},
      {"page_saves", &options.max_page_saves},
      {"window", &options.shape.window},
      {"keep", &options.shape.keep},
  };
  sizes = {.num_pages = 64, .num_slots = 16};
  options.max_num_seqs = 8;
  for (const auto& [key, number] : numbers) {
    DI_ASSIGN_OR_RETURN(*number, TakeNumber(statement, key, *number));
  }
  sizes.num_states = options.max_num_seqs;
  DI_ASSIGN_OR_RETURN(options.replay, ParseReplayMode(TakeText(statement, "replay", "bounded")));
  DI_RETURN_IF_ERROR(CheckAllTaken(statement, 0));
  DI_RETURN_IF_ERROR(CheckSchedulerOptions(options));
  driver_ = std::make_unique<SchedulerDriver>(options, sizes);
  return OkStatus();
}

// same=b tokens=n: begins with n tokens of b, its output included.
StatusOr<std::vector<int32_t>> Scenario::PromptOf(Statement& statement) {
  DI_ASSIGN_OR_RETURN(const int32_t num_prompt, TakeNumber(statement, "prompt", 0));
  if (num_prompt < 1) return InvalidArgument("expected prompt=1 or more, found ", num_prompt);
  std::vector<int32_t> prompt = MakePrompt(static_cast<int32_t>(names_.size()) + 1, num_prompt);
  const std::string other = TakeText(statement, "same", "");
  if (other.empty()) return prompt;
  DI_ASSIGN_OR_RETURN(const int handle, HandleOf(other));
  const std::vector<int32_t>& tokens = driver_->At(handle).tokens;
  const auto most = static_cast<int32_t>(std::min(tokens.size(), prompt.size()));
  DI_ASSIGN_OR_RETURN(const int32_t shared, TakeNumber(statement, "tokens", most));
  if (shared < 0 || shared > most) {
    return InvalidArgument("expected tokens=0..", most, " of ", other, ", found ", shared);
  }
  std::copy_n(tokens.begin(), shared, prompt.begin());
  return prompt;
}

StatusOr<DriverRequest> Scenario::RequestOf(Statement& statement) {
  DriverRequest request;
  DI_ASSIGN_OR_RETURN(request.prompt, PromptOf(statement));
  DI_ASSIGN_OR_RETURN(request.max_output, TakeNumber(statement, "output", 1));
  DI_ASSIGN_OR_RETURN(request.priority, TakeNumber(statement, "priority", 0));
  DI_ASSIGN_OR_RETURN(request.accepts, TakeNumber(statement, "accepts", 0));
  DI_ASSIGN_OR_RETURN(request.deadline_ms, TakeNumber(statement, "deadline_ms", -1));
  const std::string tenant = TakeText(statement, "tenant", "");
  request.tenant = tenants_.emplace(tenant, static_cast<int32_t>(tenants_.size())).first->second;
  const std::string after = TakeText(statement, "after", "");
  if (!after.empty()) {
    DI_ASSIGN_OR_RETURN(request.after, HandleOf(after));
  }
  DI_RETURN_IF_ERROR(CheckAllTaken(statement, 1));
  if (HandleOf(statement.names[0]).ok()) {
    return InvalidArgument("expected a new name, found '", statement.names[0], "' a second time");
  }
  return request;
}

Status Scenario::Add(Statement& statement) {
  DI_ASSIGN_OR_RETURN(const DriverRequest request, RequestOf(statement));
  DI_RETURN_IF_ERROR(driver_->TryAdd(request).status());
  names_.push_back(statement.names[0]);
  return OkStatus();
}

Status Scenario::Refuse(Statement& statement) {
  DI_ASSIGN_OR_RETURN(const DriverRequest request, RequestOf(statement));
  const StatusOr<int> handle = driver_->TryAdd(request);
  if (!handle.ok()) return OkStatus();
  names_.push_back(statement.names[0]);
  return InvalidArgument("expected that '", statement.names[0], "' is refused, found it admitted");
}

StatusOr<int> Scenario::HandleOf(const std::string& name) const {
  for (size_t i = 0; i < names_.size(); ++i) {
    if (names_[i] == name) return static_cast<int>(i);
  }
  return InvalidArgument("expected a name that was added, found '", name, "'");
}

StatusOr<int> Scenario::OnlyName(const Statement& statement) const {
  DI_RETURN_IF_ERROR(CheckAllTaken(statement, 1));
  return HandleOf(statement.names[0]);
}

Status Scenario::Cancel(Statement& statement) {
  DI_ASSIGN_OR_RETURN(const int handle, OnlyName(statement));
  driver_->Cancel(handle);
  Ends();  // no news
  return OkStatus();
}

Status Scenario::Preempt(Statement& statement) {
  DI_ASSIGN_OR_RETURN(const int handle, OnlyName(statement));
  driver_->Preempt(handle);
  return OkStatus();
}

Status Scenario::Fail(Statement& statement) {
  DI_ASSIGN_OR_RETURN(const int handle, OnlyName(statement));
  driver_->At(handle).fail_in = 0;
  return OkStatus();
}

Status Scenario::Damage(Statement& statement) {
  DI_ASSIGN_OR_RETURN(const int handle, OnlyName(statement));
  driver_->At(handle).loses_load = true;
  return OkStatus();
}

Status Scenario::Clear(Statement& statement) {
  DI_RETURN_IF_ERROR(CheckAllTaken(statement, 0));
  driver_->scheduler().ClearCache();
  return OkStatus();
}

Status Scenario::Wait(Statement& statement) {
  DI_ASSIGN_OR_RETURN(const int32_t ms, TakeNumber(statement, "ms", 0));
  DI_RETURN_IF_ERROR(CheckAllTaken(statement, 0));
  driver_->Advance(std::chrono::milliseconds(ms));
  return OkStatus();
}

// ---- what is answered

Status Scenario::Step(Statement& statement) {
  DI_RETURN_IF_ERROR(CheckAllTaken(statement, 0));
  std::vector<std::string> found;
  if (driver_->Plan()) {
    found = Copies(driver_->plan());
    for (std::string& rows : Rows(driver_->plan())) found.push_back(std::move(rows));
    driver_->Execute();
    driver_->Commit();
  } else {
    found.push_back("idle");
  }
  driver_->scheduler().CheckInvariants();
  for (std::string& end : Ends()) found.push_back(std::move(end));
  return Compare(statement, Join(found, " "));
}

Status Scenario::Steps(Statement& statement) {
  DI_ASSIGN_OR_RETURN(const int32_t count, TakeNumber(statement, "count", 1));
  DI_RETURN_IF_ERROR(CheckAllTaken(statement, 0));
  for (int32_t i = 0; i < count; ++i) driver_->Step();
  return Compare(statement, Join(Ends(), " "));
}

Status Scenario::RunAll(Statement& statement) {
  DI_RETURN_IF_ERROR(CheckAllTaken(statement, 0));
  for (int step = 0; driver_->Step(); ++step) {
    if (step == kMaxSteps) return InvalidArgument("expected an end, found none");
  }
  return Compare(statement, Join(Ends(), " "));
}

Status Scenario::Free(Statement& statement) {
  const Scheduler& scheduler = driver_->scheduler();
  const std::pair<const char*, int32_t> gauges[] = {
      {"pages", scheduler.pages().num_free()},     {"cached", scheduler.pages().num_cached()},
      {"held", scheduler.pages().num_held()},      {"states", scheduler.num_free_states()},
      {"saves", scheduler.num_free_saves()},       {"host", scheduler.host().num_free()},
      {"slots", scheduler.snapshots().num_free()},
  };
  for (const auto& [key, found] : gauges) {
    DI_ASSIGN_OR_RETURN(const int32_t expected, TakeNumber(statement, key, found));
    if (expected != found) {
      return InvalidArgument("expected '", key, "=", expected, "', found '", key, "=", found, "'");
    }
  }
  return CheckAllTaken(statement, 0);
}

std::vector<std::string> Scenario::Copies(const StepPlan& plan) const {
  std::vector<std::string> items;
  for (size_t i = 0; i < plan.copies.size();) {
    const PlannedCopy& copy = plan.copies[i];
    const auto same = [&](const PlannedCopy& c) {
      return c.kind == copy.kind && c.sequence == copy.sequence;
    };
    size_t count = 0;
    for (; i < plan.copies.size() && same(plan.copies[i]); ++i) ++count;
    const bool slot = i < plan.copies.size() && plan.copies[i].kind == CopyKind::kLoadSnapshot &&
                      plan.copies[i].sequence == copy.sequence;
    const std::string name = copy.sequence.v < 0 ? "" : Name(copy.sequence);
    const int32_t cached = name.empty() ? 0 : driver_->scheduler().num_cached(copy.sequence);
    switch (copy.kind) {
      case CopyKind::kSavePage:
        items.push_back(StrCat("save=", count));
        break;
      case CopyKind::kLoadPage:
        items.push_back(StrCat("load ", name, "=", count));
        break;
      case CopyKind::kSaveState:
        items.push_back(StrCat("preempt ", name));
        break;
      case CopyKind::kLoadState:
        items.push_back(StrCat("resume ", name));
        break;
      case CopyKind::kNewState:
        if (cached > 0) items.push_back(StrCat("hit ", name, "=", cached, slot ? " slot" : ""));
        break;
      case CopyKind::kLoadSnapshot:
        break;  // said with the hit
    }
  }
  return items;
}

std::vector<std::string> Scenario::Rows(const StepPlan& plan) const {
  std::vector<std::string> items;
  for (const PlannedRows& rows : plan.rows) {
    const std::string name = Name(rows.sequence);
    items.push_back(StrCat(name, "[", rows.begin, ":", rows.end, ")"));
    if (rows.snapshot_slot >= 0) items.push_back(StrCat("snapshot ", name, "@", rows.snapshot_end));
  }
  return items;
}

// What has ended since the last look.
std::vector<std::string> Scenario::Ends() {
  const std::map<DriverEnd, const char*> how = {{DriverEnd::kDone, "end "},
                                                {DriverEnd::kCancelled, "cancelled "},
                                                {DriverEnd::kExpired, "expire "},
                                                {DriverEnd::kFailed, "fail "}};
  std::vector<std::string> items;
  for (const int handle : driver_->TakeEnded()) {
    items.push_back(how.at(driver_->At(handle).end) + Name(handle));
  }
  return items;
}

Status Scenario::Finish() {
  if (driver_ == nullptr) return InvalidArgument("expected 'engine', found nothing");
  for (int step = 0; driver_->Step(); ++step) {
    if (step == kMaxSteps) return InvalidArgument("expected an end, found none");
  }
  driver_->CheckNothingHeld();
  return OkStatus();
}

}  // namespace

Status RunScenario(std::string_view name, std::string_view text) {
  const std::string head = StrCat("# ", name, ": ");
  if (!text.starts_with(head)) {
    return InvalidArgument(name, ":1: expected '", head, "' and what the scenario shows, found '",
                           text.substr(0, text.find('\n')), "'");
  }
  Scenario scenario;
  int line = 1;
  for (Statement& statement : ParseStatements(text)) {
    line = statement.line;
    DI_RETURN_IF_ERROR(Annotate(scenario.Run(statement), name, ":", line));
  }
  return Annotate(scenario.Finish(), name, ":", line);
}

}  // namespace deepinfer::scenarios

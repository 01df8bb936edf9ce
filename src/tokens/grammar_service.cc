#include "tokens/grammar_service.h"

#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace deepinfer {
namespace {

// What decides about a grammar; the rest of the start condition does not.
std::string KeyOf(const StructuredOutput& structured) {
  return StrCat(static_cast<int>(structured.kind), structured.trigger_token_ids.empty() ? "-" : "+",
                structured.text);
}

}  // namespace

GrammarService::GrammarService(std::shared_ptr<const GrammarVocabulary> vocabulary,
                               GrammarServiceOptions options)
    : vocabulary_(std::move(vocabulary)), options_(options) {}

StatusOr<std::unique_ptr<GrammarService>> GrammarService::Start(
    std::shared_ptr<const GrammarVocabulary> vocabulary, GrammarServiceOptions options) {
  std::unique_ptr<GrammarService> service(new GrammarService(std::move(vocabulary), options));
  for (int32_t i = 0; i < options.workers; ++i) {
    service->children_.push_back(
        std::make_unique<GrammarChild>(service->vocabulary_, options.limits));
    DI_RETURN_IF_ERROR(service->children_.back()->Start());
  }
  for (const auto& child : service->children_) {
    service->threads_.emplace_back([owner = service.get(), &child] { owner->Work(*child); });
  }
  return service;
}

GrammarService::~GrammarService() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (const auto& child : children_) child->Stop();
  for (std::thread& thread : threads_) thread.join();
  std::vector<std::string> keys;
  for (const auto& [key, build] : builds_) keys.push_back(key);
  for (const std::string& key : keys) Finish(key, FailedPrecondition("the server is stopping"));
}

void GrammarService::Get(const StructuredOutput& structured, Done done) {
  const std::string key = KeyOf(structured);
  std::unique_lock lock(mutex_);
  if (const auto known = by_key_.find(key); known != by_key_.end()) {
    ++stats_.hits;
    entries_.splice(entries_.begin(), entries_, known->second);
    const Result result = entries_.front().result;
    lock.unlock();
    done(result);
    return;
  }
  if (const auto running = builds_.find(key); running != builds_.end()) {
    ++stats_.joined;
    running->second.waiting.push_back(std::move(done));
    return;
  }
  if (std::ssize(queue_) >= options_.max_waiting) {
    ++stats_.rejected;
    lock.unlock();
    done(ResourceExhausted("structured output: ", options_.max_waiting,
                           " grammars wait to be built already; try again later"));
    return;
  }
  Build& build = builds_[key];
  build.structured = {.kind = structured.kind,
                      .text = structured.text,
                      .trigger_token_ids = structured.trigger_token_ids};
  build.waiting.push_back(std::move(done));
  queue_.push_back(key);
  wake_.notify_one();
}

void GrammarService::Work(GrammarChild& child) {
  ::pthread_setname_np(::pthread_self(), "di-grammar");
  for (;;) {
    std::unique_lock lock(mutex_);
    wake_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const std::string key = std::move(queue_.front());
    queue_.pop_front();
    const StructuredOutput structured = builds_[key].structured;
    lock.unlock();
    const MonotonicTime start = RealClock().Now();
    const Result result = child.Build(structured);
    lock.lock();
    stats_.build_seconds += Seconds(RealClock().Now() - start);
    ++(result.ok() ? stats_.built : stats_.failed);
    Keep(key, result);
    lock.unlock();
    Finish(key, result);
  }
}

// Requires: mutex_ is held.
void GrammarService::Keep(const std::string& key, const Result& result) {
  const bool lasting = result.ok() || result.status().code() == StatusCode::kUnimplemented ||
                       result.status().code() == StatusCode::kInvalidArgument;
  if (!lasting) return;
  const int64_t bytes = std::ssize(key) * 2 + 1024 + (result.ok() ? (*result)->memory_bytes() : 0);
  entries_.push_front({key, result, bytes});
  by_key_[key] = entries_.begin();
  stats_.cached_bytes += bytes;
  while (stats_.cached_bytes > options_.cache_bytes) {
    ++stats_.evicted;
    stats_.cached_bytes -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

void GrammarService::Finish(const std::string& key, const Result& result) {
  std::vector<Done> waiting;
  {
    const std::lock_guard lock(mutex_);
    const auto build = builds_.find(key);
    waiting = std::move(build->second.waiting);
    builds_.erase(build);
  }
  for (const Done& done : waiting) done(result);
}

GrammarServiceStats GrammarService::stats() const {
  const std::lock_guard lock(mutex_);
  GrammarServiceStats stats = stats_;
  for (const auto& child : children_) stats.restarts += child->num_restarts();
  return stats;
}

std::vector<int> GrammarService::builder_pids() const {
  std::vector<int> pids;
  for (const auto& child : children_) pids.push_back(child->pid());
  return pids;
}

}  // namespace deepinfer

// request/testing/kept_reply.h: a reply that keeps what it is told. Tests only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "request/http.h"

namespace deepinfer::testing {

struct KeptReply : HttpReply {
  void Send(HttpResponse given) override {
    response = std::move(given);
    complete = true;
  }
  void BeginStream(HttpResponse head) override { response = std::move(head); }
  void Write(std::string_view piece) override { response->body += piece; }
  void End() override { complete = true; }
  bool closed() const override { return gone; }
  void OnClosed(std::function<void()> handler) override { on_closed = std::move(handler); }

  // The client goes.
  void Go() {
    gone = true;
    if (const auto handler = std::exchange(on_closed, nullptr)) handler();
  }
  int status() const { return response ? response->status : 0; }
  std::string Header(std::string_view name) const {
    if (!response) return "";
    for (const auto& [key, value] : response->headers) {
      if (key == name) return value;
    }
    return "";
  }

  std::optional<HttpResponse> response;
  bool complete = false, gone = false;
  std::function<void()> on_closed;
};

}  // namespace deepinfer::testing

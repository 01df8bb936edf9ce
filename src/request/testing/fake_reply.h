// request/testing/fake_reply.h: a client that keeps what it was sent. Tests only.
#pragma once

#include <memory>
#include <string>

#include "base/check.h"
#include "request/http.h"

namespace deepinfer::testing {

class FakeReply : public HttpReply {
 public:
  void Send(HttpResponse response) override {
    if (gone_) return;
    CHECK(!ended_ && !streaming_);
    head_ = response;
    body_ = std::move(response.body);
    ended_ = true;
  }
  void BeginStream(HttpResponse head) override {
    if (gone_) return;
    CHECK(!ended_ && !streaming_);
    head_ = std::move(head);
    streaming_ = true;
  }
  void Write(std::string_view piece) override {
    if (gone_) return;
    CHECK(streaming_ && !ended_);
    body_ += piece;
  }
  void End() override {
    if (gone_) return;
    CHECK(streaming_ && !ended_);
    ended_ = true;
  }
  bool closed() const override { return gone_; }
  void OnClosed(std::function<void()> handler) override { on_closed_ = std::move(handler); }

  // The client goes away.
  void Leave() {
    gone_ = true;
    if (!ended_ && on_closed_) on_closed_();
  }

  bool ended() const { return ended_; }
  bool streaming() const { return streaming_; }
  int status() const { return head_.status; }
  const HttpResponse& head() const { return head_; }
  const std::string& body() const { return body_; }

 private:
  HttpResponse head_;
  std::string body_;
  std::function<void()> on_closed_;
  bool streaming_ = false, ended_ = false, gone_ = false;
};

}  // namespace deepinfer::testing

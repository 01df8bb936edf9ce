#include "request/api_keys.h"

#include <algorithm>

namespace deepinfer {
namespace {

bool IsWord(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c != '\x7f'; });
}

// No branch depends on the bytes.
bool SameDigest(const Sha256Digest& a, const Sha256Digest& b) {
  uint8_t difference = 0;
  for (size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

std::string_view Trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  return line;
}

}  // namespace

Status ApiKeys::Add(std::string_view text) {
  // A key may end in '=' (Base64), so the tenant is behind the last one that something follows.
  const size_t last = text.find_last_not_of('=');
  const size_t mark = last == std::string_view::npos ? last : text.rfind('=', last);
  const std::string_view key = text.substr(0, mark);
  const std::string_view tenant =
      mark == std::string_view::npos ? "default" : text.substr(mark + 1);
  if (!IsWord(key) || !IsWord(tenant)) {
    return InvalidArgument("an API key: expected KEY or KEY=TENANT without spaces");
  }
  const Sha256Digest digest = Sha256Of(key);
  for (const Entry& entry : keys_) {
    if (SameDigest(entry.digest, digest)) {
      return InvalidArgument("an API key of tenant ", tenant, ": is there twice");
    }
  }
  keys_.push_back({.digest = digest, .tenant = std::string(tenant)});
  return OkStatus();
}

Status ApiKeys::AddFile(const std::string& path, Disk& disk) {
  DI_ASSIGN_OR_RETURN(const std::string text, disk.ReadText(path, int64_t{16} << 20));
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = Trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.front() == '#') continue;
    DI_RETURN_IF_ERROR(Annotate(Add(line), path, ":", number));
  }
  return OkStatus();
}

std::optional<std::string> ApiKeys::TenantOf(std::string_view key) const {
  if (keys_.empty()) return "";
  const Sha256Digest digest = Sha256Of(key);
  const Entry* found = nullptr;
  for (const Entry& entry : keys_) found = SameDigest(entry.digest, digest) ? &entry : found;
  if (found == nullptr) return std::nullopt;
  return found->tenant;
}

std::string_view KeyOf(const HttpRequest& request) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view value = request.Header("authorization");
  const bool is_bearer =
      value.size() > kScheme.size() &&
      std::equal(kScheme.begin(), kScheme.end(), value.begin(),
                 [](char a, char b) { return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b); });
  return is_bearer ? value.substr(kScheme.size()) : request.Header("x-api-key");
}

}  // namespace deepinfer

// base/function_ref.h: a callable that is handed down a call and not kept.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace deepinfer {

template <typename Signature>
class FunctionRef;

// Two pointers; owns nothing and allocates nothing. The callable outlives the object, which a
// temporary in the argument list of a call does.
template <typename Result, typename... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <typename Callable>
    requires(!std::is_same_v<std::remove_cvref_t<Callable>, FunctionRef> &&
             std::is_object_v<std::remove_reference_t<Callable>> &&
             std::is_invocable_r_v<Result, Callable&, Args...>)
  FunctionRef(Callable&& callable)  // NOLINT: implicit, as arguments are lambdas
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::add_pointer_t<Callable>>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace deepinfer

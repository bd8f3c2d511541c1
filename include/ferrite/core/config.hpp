// Configs are changed by with_x functions: each returns a copy with one member set.
#pragma once

#include <type_traits>
#include <utility>

namespace ferrite::detail {

template <class Config, class Owner, class T>
Config with(Config config, T Owner::*member, std::type_identity_t<T> value) {
  config.*member = std::move(value);
  return config;
}

}  // namespace ferrite::detail

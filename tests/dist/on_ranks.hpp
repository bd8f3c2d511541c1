// Ranks that are threads, for tests.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "ferrite/dist/in_process.hpp"

namespace ferrite::testing {

using Handle = std::unique_ptr<dist::InProcessGroup>;

/// f(handle) on a thread for each rank.
template <class F>
void on_ranks(int ranks, const F& f) {
  auto handles = dist::InProcessGroup::create(ranks);
  std::vector<std::thread> threads;
  for (Handle& handle : handles) {
    handle->set_timeout(std::chrono::seconds(20));
    threads.emplace_back([&f, h = std::move(handle)]() mutable {
      try {
        f(h);
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace ferrite::testing

# SPDX-License-Identifier: MIT
# find_package(skua) gives skua::skua (shared) and skua::static.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/skuaTargets.cmake)

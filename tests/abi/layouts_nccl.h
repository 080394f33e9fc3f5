/* SPDX-License-Identifier: Apache-2.0 */
/* layouts_nccl: for layouts.c as C++: each struct beside NCCL's own, of the headers in src/include.
 */
#ifndef TESTS_ABI_LAYOUTS_NCCL_H
#define TESTS_ABI_LAYOUTS_NCCL_H

#include <stddef.h>
#include <type_traits>

/* Both name some numbers alike, and NCCL's are macros. */
namespace ours {
#include "net_plugin/abi/collnet_abi.h"
#include "tuner_plugin/abi/tuner_abi.h"
} // namespace ours
using namespace ours;

#include "nccl_net.h"
#include "nccl_tuner.h"

/* NCCL's name of each of ours. Tuner v1 is in no header of today. */
typedef ncclNetVDeviceProps_v9_t nccl_net_vdevice_v9;
typedef ncclNetVDeviceProps_v12_t nccl_net_vdevice_v12;
typedef ncclNetCommConfig_v10_t nccl_net_config_v10;
typedef ncclNetCommAttr_v11_t nccl_net_comm_attributes_v11;
typedef ncclNetAttr_v11_t nccl_net_attributes_v11;
typedef ncclNetProperties_v7_t nccl_net_properties_v7;
typedef ncclNetProperties_v8_t nccl_net_properties_v8;
typedef ncclNetProperties_v9_t nccl_net_properties_v9;
typedef ncclNetProperties_v11_t nccl_net_properties_v11;
typedef ncclNetProperties_v12_t nccl_net_properties_v12;
typedef ncclNet_v7_t nccl_net_v7;
typedef ncclNet_v8_t nccl_net_v8;
typedef ncclNet_v9_t nccl_net_v9;
typedef ncclNet_v10_t nccl_net_v10;
typedef ncclNet_v11_t nccl_net_v11;
typedef ncclNet_v12_t nccl_net_v12;
typedef ncclCollNet_v8_t nccl_collnet_v8;
typedef ncclCollNet_v9_t nccl_collnet_v9;
typedef ncclCollNet_v10_t nccl_collnet_v10;
typedef ncclCollNet_v11_t nccl_collnet_v11;
typedef ncclCollNet_v12_t nccl_collnet_v12;
typedef tuner_abi_v1 nccl_tuner_abi_v1;
typedef ncclTuner_v2_t nccl_tuner_abi_v2;
typedef ncclTuner_v3_t nccl_tuner_abi_v3;
typedef ncclTuner_v4_t nccl_tuner_abi_v4;
typedef ncclTuner_v5_t nccl_tuner_abi_v5;
typedef ncclTuner_v6_t nccl_tuner_abi_v6;
typedef ncclNvlDomainInfo_v5_t nccl_tuner_abi_nvl_domain_info;

/* Values are alike when they are handed over alike: pointers, numbers of one size, or functions
 * with alike arguments. */
template <class A, class B> struct alike {
  static constexpr bool value =
      sizeof(A) == sizeof(B) && std::is_pointer<A>::value == std::is_pointer<B>::value &&
      std::is_floating_point<A>::value == std::is_floating_point<B>::value;
};
template <class... A, class... B> struct alike<nccl_result (*)(A...), ncclResult_t (*)(B...)> {
  template <class... X> struct list {};
  template <class X, class Y> struct all { static constexpr bool value = false; };
  template <class... X, class... Y> struct all<list<X...>, list<Y...>> {
    static constexpr bool value = std::is_same<list<std::bool_constant<alike<X, Y>::value>...>,
                                               list<std::bool_constant<(sizeof(X) > 0)>...>>::value;
  };
  template <bool is_same_count, class X, class Y> struct checked {
    static constexpr bool value = false;
  };
  template <class X, class Y> struct checked<true, X, Y> {
    static constexpr bool value = all<X, Y>::value;
  };
  static constexpr bool value =
      checked<sizeof...(A) == sizeof...(B), list<A...>, list<B...>>::value;
};

#define SAME(type, member)                                                                         \
  static_assert(offsetof(type, member) == offsetof(nccl_##type, member),                           \
                "place of " #type "." #member);                                                    \
  static_assert(alike<decltype(type::member), decltype(nccl_##type::member)>::value,               \
                #type "." #member)
#define SAME_SIZE(type) static_assert(sizeof(type) == sizeof(nccl_##type), "size of NCCL's " #type)

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Registers of 16 bytes, which every x86-64 and AArch64 has; on others the compiler makes do. */
#define VARIANT reduce_portable
#define VECTOR_BYTES 16
#define TARGET

#include "net_plugin/reduce/vector.h"

#define u32_from_u16 u32_from_u16_by_compiler
#define u16_from_u32 u16_from_u32_by_compiler
#define u32_from_u8 u32_from_u8_by_compiler
#define u8_from_u32 u8_from_u32_by_compiler

#include "net_plugin/reduce/formats.h"

#define f16_from_f32 f16_from_f32_by_integers
#define f32_from_f16 f32_from_f16_by_integers

#include "net_plugin/reduce/variant_body.h"

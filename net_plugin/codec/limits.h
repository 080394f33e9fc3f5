/* SPDX-License-Identifier: Apache-2.0 */
/* limits: every tuned constant of the codec, with its unit and the evidence for it. Where none is
 * given a value is not measured by itself: chosen by reasoning, and part of what was measured as a
 * whole. */
#ifndef CODEC_LIMITS_H
#define CODEC_LIMITS_H

/* Tenths: a chunk is compressed if that makes it at least 1.1 times shorter. Less is not worth the
 * processors' time (f32 gradients have 1.15, README.md). */
#define CODEC_RATIO_TENTHS 11
/* Bytes: what blocks may have taken more than what pays, at any time. Chunks of which a part does
 * not pay are common, where a small parameter lies beside large ones. */
#define CODEC_PATIENCE_BYTES 2048
/* Bytes of a sample: a plane whose commonest one is rarer than this is taken for noise: of 512 even
 * bytes one comes 10 times in one sample of 90 (256 counts, Poisson of mean 2), and of those with
 * something to gain the commonest comes 17 times or more (half of the bytes in a window of 15). */
#define CODEC_LEAST_PEAK 10
/* Chunks between guesses: the first while nothing is known for long, the last when each guess
 * said the same. A guess costs 4 us more where a chunk of 128 KiB takes 11
 * (codec-speed --width -1), so 2 % at first, 0.2 % later; a change is seen after 2 MiB, or 32. */
#define CODEC_FIRST_INTERVAL 16
#define CODEC_LAST_INTERVAL 256
/* Chunks in a row that say that the traffic has changed: biases and other small parameters
 * between large ones are one or two. */
#define CODEC_MISSES 4
/* What a chunk takes is the mean of about so many, and one that takes up to this part more than
 * that is like them. Not measured by themselves. */
#define CODEC_USUAL_CHUNKS 8
#define CODEC_USUAL_PART 8

#endif

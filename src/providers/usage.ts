/** Turns a provider's token counts into a {@link Usage} with its cost. */

import type { Usage } from "../message.ts";
import type { ModelCost } from "./provider.ts";

/** Token counts of one reply. `input` excludes the cached parts; `output` includes reasoning. */
export interface TokenCounts {
  input: number;
  output: number;
  cacheRead?: number;
  cacheWrite?: number;
  reasoning?: number;
}

const TOKENS_PER_PRICE = 1_000_000;

/** The usage record of `counts`, priced with `cost`; without prices every cost is zero. */
export function priceUsage(counts: TokenCounts, cost: ModelCost | undefined): Usage {
  const { input, output, cacheRead = 0, cacheWrite = 0, reasoning } = counts;
  const prices = cost ?? { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  const parts = {
    input: (input * prices.input) / TOKENS_PER_PRICE,
    output: (output * prices.output) / TOKENS_PER_PRICE,
    cacheRead: (cacheRead * prices.cacheRead) / TOKENS_PER_PRICE,
    cacheWrite: (cacheWrite * prices.cacheWrite) / TOKENS_PER_PRICE,
  };
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    ...(reasoning === undefined ? {} : { reasoning }),
    totalTokens: input + output + cacheRead + cacheWrite,
    cost: { ...parts, total: parts.input + parts.output + parts.cacheRead + parts.cacheWrite },
  };
}

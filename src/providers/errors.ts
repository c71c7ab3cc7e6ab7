/** The errors of this layer. Only {@link ModelError} leaves it; a failed call is an event, not a throw. */

import { UsageError } from "../errors.ts";
import type { ProviderFailure } from "./provider.ts";

/** The model that was asked for does not exist or can't be used; nothing was sent. */
export class ModelError extends UsageError {}

/** Carries a {@link ProviderFailure} from where it is found to the end of the stream; never leaves the layer. */
export class ProviderFault extends Error {
  readonly failure: ProviderFailure;

  constructor(failure: ProviderFailure, options: { cause?: unknown } = {}) {
    super(failure.message, options);
    this.name = "ProviderFault";
    this.failure = failure;
  }
}

/**
 * The errors of this layer. {@link ModelError} and {@link MissingKeyError} come from choosing a
 * model; a failed call is an event, not a throw.
 */

import { PrimeAgentError, UsageError } from "../errors.ts";
import type { ProviderFailure } from "./provider.ts";

/** The model that was asked for does not exist or can't be used; nothing was sent. */
export class ModelError extends UsageError {}

/** A provider needs a key and there is none that can be used; nothing was sent. Exit code 3. */
export class MissingKeyError extends PrimeAgentError {
  readonly provider: string;

  constructor(provider: string, message: string, hint: string) {
    super("auth", message, { hint });
    this.provider = provider;
  }
}

/** Carries a {@link ProviderFailure} from where it is found to the end of the stream; never leaves the layer. */
export class ProviderFault extends Error {
  readonly failure: ProviderFailure;

  constructor(failure: ProviderFailure, options: { cause?: unknown } = {}) {
    super(failure.message, options);
    this.name = "ProviderFault";
    this.failure = failure;
  }
}

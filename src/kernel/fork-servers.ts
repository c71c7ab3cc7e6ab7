/**
 * The fork servers of this process, one for each interpreter. A first kernel
 * is started directly, since a template would cost it time; from the second
 * one on a template pays for itself.
 */

import { debug } from "../log.ts";
import { ForkServerUnavailableError } from "./errors.ts";
import { ForkServer } from "./fork-server.ts";
import { SpareKernel } from "./spare-kernel.ts";

/** See the head of this file. */
export class ForkServers {
  /** A kernel in reserve. */
  readonly spare = new SpareKernel();
  readonly #enabled: boolean;
  readonly #servers = new Map<string, { server?: ForkServer; boots: number }>();
  /** Stuck ones, whose kernels still run. */
  readonly #retired: ForkServer[] = [];

  /** `enabled` is the platform's and the user's word: forking is for Linux only. */
  constructor(enabled: boolean) {
    this.#enabled = enabled;
  }

  /** The server to fork the next kernel from; undefined when it is better started directly. */
  next(python: string, launcher: string, env: Record<string, string>): ForkServer | undefined {
    if (!this.#enabled) return undefined;
    const key = `${python}\0${launcher}`;
    const entry = this.#servers.get(key) ?? { boots: 0 };
    this.#servers.set(key, entry);
    entry.boots += 1;
    if (entry.boots === 1) return undefined;
    if (!entry.server?.alive) {
      if (entry.server) this.#retired.push(entry.server);
      try {
        entry.server = new ForkServer(python, launcher, env);
      } catch (error) {
        if (!(error instanceof ForkServerUnavailableError)) throw error;
        debug("fork-server", "no template", error);
        return undefined;
      }
    }
    return entry.server;
  }

  /** Ends all templates, and with them the kernels that they forked. */
  dispose(): void {
    this.spare.dispose();
    for (const { server } of this.#servers.values()) server?.dispose();
    for (const server of this.#retired) server.dispose();
    this.#servers.clear();
  }
}

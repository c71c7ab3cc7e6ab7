/** Boots of scripted kernels, one after another, each at the test's word. */

import type { BootedKernel } from "../../src/kernel/boot.ts";
import { defer, raceWithAbort, type Deferred } from "../../src/async.ts";
import type { ProvisionerOptions } from "../../src/kernel/provisioner.ts";
import type { RestoreReport } from "../../src/kernel/snapshot.ts";
import { ScriptedKernel, type KernelScript } from "./scripted-kernel.ts";

/** What a boot does; by default it gives a kernel at once. */
export interface BootScript extends KernelScript {
  /** Awaited before there is a kernel; a rejection is the boot's. */
  gate?: Promise<void>;
  restore?: RestoreReport;
  /** Gives a kernel although the boot was aborted, as if that had come at the last moment. */
  ignoresAbort?: boolean;
}

/** See the head of this file. */
export class ScriptedBoots implements AsyncDisposable {
  /** The kernels that came up. */
  readonly kernels: ScriptedKernel[] = [];
  /** How many boots were begun. */
  begun = 0;
  readonly #scripts: BootScript[];
  #changed: Deferred<void> = defer();

  /** One script for each boot; the last one for all that follow. */
  constructor(...scripts: BootScript[]) {
    this.#scripts = scripts.length > 0 ? scripts : [{}];
  }

  readonly boot: ProvisionerOptions["boot"] = async (report, signal): Promise<BootedKernel> => {
    const script = this.#scripts[Math.min(this.begun, this.#scripts.length - 1)] as BootScript;
    this.begun += 1;
    this.#changed.resolve();
    this.#changed = defer();
    report("Starting IPython kernel…");
    if (script.gate) await (script.ignoresAbort ? script.gate : raceWithAbort(script.gate, signal));
    const scripted = await ScriptedKernel.start(script);
    this.kernels.push(scripted);
    const { kernel } = scripted;
    return { kernel, bootMs: 1, ...(script.restore && { restore: script.restore }) };
  };

  /** Resolves when so many boots have begun. */
  async untilBegun(count: number): Promise<void> {
    while (this.begun < count) await this.#changed.promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const kernel of this.kernels) await kernel[Symbol.asyncDispose]();
  }
}

/**
 * Our kernel object over a scripted kernel: a test says what each cell does,
 * message by message, and what becomes of interrupts and other requests.
 */

import { defer } from "../../src/async.ts";
import type { KernelExit } from "../../src/kernel/errors.ts";
import type { CellOutput, ExecutionOutcome } from "../../src/kernel/execution.ts";
import type { HostHandlers } from "../../src/kernel/host-bridge.ts";
import { Kernel } from "../../src/kernel/kernel.ts";
import type { KernelProcess, ReadyLine } from "../../src/kernel/process.ts";
import type { QueueTimes } from "../../src/kernel/queue.ts";
import { MisbehavingKernel, type KernelRequest, type Misbehaviour } from "./misbehaving-kernel.ts";

/** Short enough for tests that wait for a limit, long enough for a loaded machine to stay below the others. */
const TIMES: QueueTimes = {
  reuseWait: 400,
  interruptInterval: 50,
  interruptPatience: 60,
  abortGrace: 100,
  acknowledgeWait: 300,
  fenceAfter: 40,
  fenceWait: 500,
  linger: 0,
  wakeAfter: 100,
};

/** What a scripted kernel does. */
export interface KernelScript {
  /** Acts out a cell. */
  onCell?(cell: ScriptedCell): void;
  /** Takes over a request that is no cell; return true if that was all. */
  onRequest?(request: KernelRequest, wire: MisbehavingKernel): boolean | void;
  handlers?: HostHandlers;
  times?: Partial<QueueTimes>;
  /** As if somebody else had started it: without a process of ours. */
  foreign?: boolean;
  socketTypes?: Misbehaviour["socketTypes"];
  onLateReceipt?(receipt: unknown): void;
}

/** See the head of this file. */
export class ScriptedKernel implements AsyncDisposable {
  readonly wire: MisbehavingKernel;
  readonly process = new ScriptedProcess();
  /** The cells that were sent, in order. */
  readonly cells: ScriptedCell[] = [];
  kernel!: Kernel;

  static async start(script: KernelScript = {}): Promise<ScriptedKernel> {
    const scripted = new ScriptedKernel(script);
    scripted.kernel = await Kernel.connect({
      connection: scripted.wire.info,
      handlers: script.handlers ?? {},
      times: { ...TIMES, ...script.times },
      ...(!script.foreign && { process: scripted.process }),
      ...(script.onLateReceipt && { onLateReceipt: script.onLateReceipt }),
    });
    return scripted;
  }

  private constructor(script: KernelScript) {
    this.wire = new MisbehavingKernel({
      ...(script.socketTypes && { socketTypes: script.socketTypes }),
      onRequest: (request, wire) => {
        if (request.header.msg_type === "execute_request") {
          const cell = new ScriptedCell(request, wire);
          this.cells.push(cell);
          (script.onCell ?? succeed)(cell);
          return true;
        }
        return script.onRequest?.(request, wire) || answerUsually(request, wire);
      },
    });
  }

  /** Runs a cell and collects its output. */
  async run(
    code: string,
    options: { signal?: AbortSignal; timeoutMs?: number } = {},
  ): Promise<{ outcome: ExecutionOutcome; output: CellOutput[] }> {
    const output: CellOutput[] = [];
    const outcome = await this.kernel.execute(code, {
      onOutput: (item) => output.push(item),
      ...options,
    });
    return { outcome, output };
  }

  /** The requests of one type so far. */
  requests(msgType: string): KernelRequest[] {
    return this.wire.requests.filter((request) => request.header.msg_type === msgType);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.exit({ code: 0, signal: null });
    await this.kernel?.kill();
    this.wire[Symbol.dispose]();
  }
}

/** A cell in a scripted kernel's hands. */
export class ScriptedCell {
  readonly code: string;
  readonly request: KernelRequest;
  readonly #wire: MisbehavingKernel;

  constructor(request: KernelRequest, wire: MisbehavingKernel) {
    this.request = request;
    this.code = String(request.content["code"]);
    this.#wire = wire;
  }

  /** Publishes any message with this cell as its parent. */
  publish(msgType: string, content: object): this {
    this.#wire.publish(msgType, content, { parent: this.request.header });
    return this;
  }

  busy(): this {
    return this.publish("status", { execution_state: "busy" });
  }

  input(): this {
    return this.publish("execute_input", { code: this.code, execution_count: 1 });
  }

  print(text: string, name = "stdout"): this {
    return this.publish("stream", { name, text });
  }

  idle(): this {
    return this.publish("status", { execution_state: "idle" });
  }

  reply(content: object = { status: "ok", execution_count: 1 }): this {
    this.#wire.reply(this.request, "execute_reply", content);
    return this;
  }
}

/** A process that ends when a test says so; and at SIGKILL, unless the test wants signals otherwise. */
export class ScriptedProcess implements KernelProcess {
  /** Above the largest that Linux gives: nobody has it. */
  readonly pid = 4_194_305;
  readonly ready = Promise.resolve({ pid: this.pid } as ReadyLine);
  readonly signals: string[] = [];
  readonly #exit = defer<KernelExit>();
  readonly #onSignal: (process: ScriptedProcess, signal: string) => void;
  stderr = "";

  constructor(onSignal: (process: ScriptedProcess, signal: string) => void = dieWhenKilled) {
    this.#onSignal = onSignal;
  }

  get exited(): Promise<KernelExit> {
    return this.#exit.promise;
  }

  exit(exit: KernelExit): void {
    this.#exit.resolve(exit);
  }

  signal(signal: "SIGINT" | "SIGTERM" | "SIGKILL", target: "process" | "group"): void {
    this.signals.push(`${signal} ${target}`);
    this.#onSignal(this, signal);
  }

  async stderrTail(): Promise<string> {
    return this.stderr;
  }

  release(): void {}
}

function dieWhenKilled(process: ScriptedProcess, signal: string): void {
  if (signal === "SIGKILL") process.exit({ code: null, signal });
}

/** What a cell does unless a test says otherwise. */
export function succeed(cell: ScriptedCell): void {
  cell.busy().input().reply().idle();
}

function answerUsually(request: KernelRequest, wire: MisbehavingKernel): boolean {
  const { msg_type } = request.header;
  if (msg_type === "kernel_info_request") return false;
  wire.publish("status", { execution_state: "busy" }, { parent: request.header });
  wire.reply(request, msg_type.replace("request", "reply"), { status: "ok" });
  wire.publish("status", { execution_state: "idle" }, { parent: request.header });
  return true;
}

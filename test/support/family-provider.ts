/**
 * One provider for a whole family of agents: each agent is answered by a script of its own, whatever the
 * order in which they ask.
 *
 *   await using provider = await FamilyProvider.start({ root: […], reader: […] });
 */

import {
  ProviderServer,
  type RecordedRequest,
  type ServedReply,
  type ServedScript,
} from "./provider-server.ts";

/** The scripts by the agents' names; the root's is called `root`. The last entry serves for all later requests. */
export type FamilyScripts = Record<string, readonly ServedScript[]>;

/** The credentials and the flags that make the program ask the server. */
export const FAMILY_ENV = { TEST_KEY: "a-key-for-tests" };

/** See the head of this file. */
export class FamilyProvider implements AsyncDisposable {
  readonly server: ProviderServer;
  readonly #scripts: FamilyScripts;
  readonly #asked = new Map<string, RecordedRequest[]>();
  #waiters: Array<() => void> = [];

  private constructor(server: ProviderServer, scripts: FamilyScripts) {
    this.server = server;
    this.#scripts = scripts;
  }

  static async start(scripts: FamilyScripts, maxRequests = 500): Promise<FamilyProvider> {
    const server = await ProviderServer.start();
    const family = new FamilyProvider(server, scripts);
    server.push(...Array.from({ length: maxRequests }, () => family.#reply));
    return family;
  }

  /** The flags of a run that asks this server. */
  get flags(): string[] {
    const url = this.server.baseUrl("openai-completions");
    const api = ["--base-url", url, "--api", "openai-completions", "--api-key-env", "TEST_KEY"];
    return ["-m", "local/test", ...api];
  }

  /** What an agent has asked so far. */
  requestsOf(name: string): readonly RecordedRequest[] {
    return this.#asked.get(name) ?? [];
  }

  /** Resolves when an agent has asked `count` times; for replies that wait for others with `after`. */
  async asked(name: string, count: number): Promise<void> {
    while (this.requestsOf(name).length < count) {
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
  }

  readonly #reply = (request: RecordedRequest): ServedReply => {
    const name = nameIn(request);
    const requests = [...this.requestsOf(name), request];
    this.#asked.set(name, requests);
    for (const wake of this.#waiters.splice(0)) wake();
    const script = this.#scripts[name] ?? this.#scripts["others"] ?? [];
    const entry = script[Math.min(requests.length, script.length) - 1];
    if (!entry) return { status: 400, body: `there is no script for ${name}` };
    return typeof entry === "function" ? entry(request) : entry;
  };
}

/** A reply that runs one cell. */
export function cell(code: string, more: ServedReply = {}): ServedReply {
  return { ...more, toolCalls: [{ name: "ipython", arguments: { code } }] };
}

/** The text of the last message of a request. */
export function lastMessage(request: RecordedRequest): string {
  return String(request.body.messages.at(-1)?.content ?? "");
}

/** All messages of a request as one text. */
export function transcript(request: RecordedRequest): string {
  return JSON.stringify(request.body.messages);
}

function nameIn(request: RecordedRequest): string {
  const system = String(request.body.messages[0]?.content ?? "");
  return /^Your name: (.+)$/m.exec(system)?.[1] ?? "root";
}

/** An agent over a scripted provider and a tool that answers as told, without a kernel. */

import type { AgentEvent, AgentEventBody, RunOutcome } from "../../src/agent/events.ts";
import { Agent, type AgentParts } from "../../src/agent/loop.ts";
import { Session } from "../../src/agent/session.ts";
import { messageText, type Message } from "../../src/message.ts";
import {
  SCRIPTED_MODEL,
  ScriptedProvider,
  type ScriptedOptions,
  type ScriptedReply,
} from "../../src/providers/scripted.ts";
import type { IpythonCallOptions } from "../../src/tool/ipython.ts";
import type { IpythonResult } from "../../src/tool/result.ts";

/** What the tool does with a cell; a text is its output. */
export type CellAnswer = (
  code: string,
  options: IpythonCallOptions,
) => string | IpythonResult | Promise<string | IpythonResult>;

/** A call of the one tool, as a script has it. */
export function calls(...codes: string[]): ScriptedReply {
  return { toolCalls: codes.map((code) => ({ name: "ipython", arguments: { code } })) };
}

/** The result of a cell with this text. */
export function cellResult(text: string): IpythonResult {
  return {
    content: [{ type: "text", text }],
    isError: false,
    details: {
      durationMs: 1,
      status: "ok",
      stdout: text,
      stderr: "",
      diffs: [],
      attachments: [],
      sentAgentMessages: [],
      kernelRestarted: false,
      notes: [],
    },
  };
}

/** See the head of this file. */
export class LoopBench {
  readonly session = Session.inMemory({ cwd: "/" });
  readonly provider: ScriptedProvider;
  readonly events: AgentEvent[] = [];
  /** The cells that ran. */
  readonly cells: string[] = [];
  readonly agent: Agent;
  readonly abort = new AbortController();

  constructor(
    script: readonly ScriptedReply[],
    options: {
      answer?: CellAnswer;
      maxRetries?: number;
      script?: ScriptedOptions;
    } & Partial<AgentParts> = {},
  ) {
    const {
      answer = (code) => `output of ${code}`,
      maxRetries = 0,
      script: scripted,
      ...parts
    } = options;
    this.provider = new ScriptedProvider(script, scripted);
    this.agent = new Agent({
      session: this.session,
      binding: {
        model: SCRIPTED_MODEL,
        provider: this.provider,
        apiKey: undefined,
        request: { maxRetries },
      },
      tool: {
        run: async (code, call = {}) => {
          this.cells.push(code);
          const result = await answer(code, call);
          return typeof result === "string" ? cellResult(result) : result;
        },
      },
      systemPrompt: "You are a test.",
      limits: {},
      emit: (event) => this.events.push(event),
      prewarm: () => undefined,
      ...parts,
    });
  }

  run(prompt: string | undefined = "go"): Promise<RunOutcome> {
    return this.agent.run(prompt, this.abort.signal);
  }

  /** The events of one kind. */
  all<T extends AgentEventBody["type"]>(type: T): Array<AgentEvent & { type: T }> {
    return this.events.filter((event): event is AgentEvent & { type: T } => event.type === type);
  }

  /** `role: text` of every message that the request had; calls as `→ code`. */
  sent(request: number): string[] {
    return (this.provider.requests[request]?.messages ?? []).map(shortForm);
  }
}

function shortForm(message: Message): string {
  const text = messageText(message);
  if (message.role !== "assistant") return `${message.role}: ${text}`;
  const codes = message.content.flatMap((block) =>
    block.type === "toolCall" ? [`→ ${String(block.arguments["code"] ?? "?")}`] : [],
  );
  return `assistant: ${[text, ...codes].filter(Boolean).join(" ")}`;
}

/** Runs the tool calls of one reply in order: each gets exactly one result, whatever happens. */

import { AbortedError, errorMessage, PrimeAgentError } from "../errors.ts";
import type { ToolCallBlock, ToolResultMessage } from "../message.ts";
import { IPYTHON_TOOL, type IpythonTool } from "../tool/ipython.ts";
import type { EventSink } from "./events.ts";

/** What running calls needs. */
export interface CallContext {
  tool: IpythonTool;
  emit: EventSink;
  /** Aborts all calls of the reply. */
  signal: AbortSignal;
  /** Makes a signal that also aborts only the call that runs now. */
  callSignal(): AbortSignal;
}

/** The result of one call; `fatal` is the error that makes the whole run pointless, such as no kernel. */
export interface CallResult {
  message: ToolResultMessage;
  fatal?: PrimeAgentError;
}

/** Runs one call and shapes its result message. Never throws. */
export async function runCall(call: ToolCallBlock, context: CallContext): Promise<CallResult> {
  const refusal = refuse(call);
  if (refusal) return { message: errorResult(call, refusal) };
  if (context.signal.aborted)
    return { message: errorResult(call, "Not run: the turn was interrupted before.") };
  const code = call.arguments["code"] as string;
  context.emit({ type: "tool_start", call, code });
  try {
    const result = await context.tool.run(code, {
      signal: context.callSignal(),
      onProgress: (stage) => context.emit({ type: "kernel_progress", stage }),
      onOutput: (stream, text) =>
        context.emit({ type: "tool_output", callId: call.id, stream, text }),
    });
    return { message: resultMessage(call, result.content, result.isError, result.details) };
  } catch (error) {
    if (error instanceof AbortedError) return { message: errorResult(call, "Interrupted.") };
    const fatal =
      error instanceof PrimeAgentError
        ? error
        : new PrimeAgentError("tool", errorMessage(error), { cause: error });
    return {
      message: errorResult(call, `The kernel can't be used: ${fatal.message} ${fatal.hint}`.trim()),
      fatal,
    };
  }
}

/** Why a call can't be run as it was sent, in words for the model; undefined when it can. */
function refuse(call: ToolCallBlock): string | undefined {
  if (call.name !== IPYTHON_TOOL.name) {
    return `There is no tool "${call.name}". The one tool is "ipython"; run Python, or a shell with %%bash, through it.`;
  }
  if (call.malformed) {
    const advice = call.malformed.includes("cut off")
      ? "Write the cell again, in smaller pieces."
      : 'Send it again as {"code": "…"}.';
    return `This call was not run: ${call.malformed}. ${advice}`;
  }
  if (typeof call.arguments["code"] !== "string") {
    const keys = Object.keys(call.arguments).join(", ") || "nothing";
    return `This call was not run: it needs {"code": string}, but had ${keys}.`;
  }
  return undefined;
}

function errorResult(call: ToolCallBlock, text: string): ToolResultMessage {
  return resultMessage(call, [{ type: "text", text }], true);
}

function resultMessage(
  call: ToolCallBlock,
  content: ToolResultMessage["content"],
  isError: boolean,
  details?: unknown,
): ToolResultMessage {
  return {
    role: "toolResult",
    toolCallId: call.id,
    toolName: call.name,
    content,
    ...(details !== undefined && { details }),
    isError,
    timestamp: Date.now(),
  };
}

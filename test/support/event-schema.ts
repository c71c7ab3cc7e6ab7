/** What each line of `stream-json` holds: a table of keys and types, and a check against it. */

/** Types by key; `?` at the end of a key marks one that may be absent. */
type Shape = Record<string, string>;

/** On every line. */
const ENVELOPE: Shape = {
  type: "string",
  session_id: "string",
  uuid: "string",
  seq: "number",
  timestamp: "string",
};
/** On every line that may belong to a sub-agent. */
const PARENT: Shape = { parent_tool_use_id: "string|null", "agent?": "object" };

const USAGE: Shape = {
  input_tokens: "number",
  output_tokens: "number",
  cache_read_input_tokens: "number",
  cache_creation_input_tokens: "number",
  "reasoning_tokens?": "number",
  total_tokens: "number",
};

/** By `type`, or `type/subtype` for system lines; `a.b` describes what is inside of `a`. */
const LINES: Record<string, Shape> = {
  "system/init": {
    subtype: "string",
    schema: "number",
    version: "string",
    cwd: "string",
    model: "string|null",
    tools: "array",
    skills: "array",
    context_files: "array",
    session_file: "string|null",
    resumed: "boolean",
    limits: "object",
    "limits.timeout_ms": "number|null",
    "limits.cell_timeout_ms": "number|null",
    "limits.max_turns": "number|null",
    "limits.max_tokens": "number|null",
    "limits.max_budget_usd": "number|null",
    "limits.max_retries": "number",
  },
  "system/kernel": {
    ...PARENT,
    subtype: "string",
    state: "string",
    boot_ms: "number|null",
    python: "string|null",
    reason: "string|null",
  },
  "system/api_retry": {
    ...PARENT,
    subtype: "string",
    attempt: "number",
    max_retries: "number",
    delay_ms: "number",
    reason: "string",
    http_status: "number|null",
  },
  "system/compact_boundary": {
    ...PARENT,
    subtype: "string",
    trigger: "string",
    tokens_before: "number",
    tokens_after: "number|null",
  },
  "system/status": { subtype: "string", elapsed_ms: "number", activity: "string" },
  "system/warning": { ...PARENT, subtype: "string", message: "string" },
  "system/agent": { ...PARENT, subtype: "string", state: "string", usage: "object|null" },
  assistant: {
    ...PARENT,
    message: "object",
    "message.id": "string|null",
    "message.type": "string",
    "message.role": "string",
    "message.model": "string",
    "message.content": "array",
    "message.stop_reason": "string|null",
    "message.usage": "object",
    ...inside("message.usage", USAGE),
  },
  user: {
    ...PARENT,
    message: "object",
    "message.role": "string",
    "message.content": "array",
    "tool_use_result?": "object|null",
    "source?": "string",
  },
  stream_event: { ...PARENT, event: "object", "event.type": "string", "event.delta?": "object" },
  tool_progress: {
    ...PARENT,
    tool_use_id: "string|null",
    "stream?": "string",
    "text?": "string",
    "stage?": "string",
  },
  check: { command: "string", passed: "boolean", exit_code: "number|null", output: "string" },
  result: {
    subtype: "string",
    is_error: "boolean",
    exit_code: "number",
    result: "string",
    error: "object|null",
    num_turns: "number",
    num_tool_calls: "number",
    stop_reason: "string|null",
    duration_ms: "number",
    duration_api_ms: "number",
    duration_tool_ms: "number",
    ttft_ms: "number|null",
    startup_ms: "number|null",
    total_cost_usd: "number|null",
    usage: "object",
    ...inside("usage", USAGE),
    modelUsage: "object",
    agents: "array",
    warnings: "array",
    session_file: "string|null",
    resume: "string|null",
  },
};

const ERROR: Shape = {
  code: "string",
  message: "string",
  http_status: "number|null",
  provider: "string|null",
  retryable: "boolean",
};

/** What is wrong with a line: keys that are missing, unknown or of another type; empty when nothing is. */
export function schemaFaults(line: Record<string, any>): string[] {
  const kind = line["type"] === "system" ? `system/${line["subtype"]}` : String(line["type"]);
  const shape = LINES[kind];
  if (!shape) return [`${kind} is no known line`];
  const faults = faultsOf(line, { ...ENVELOPE, ...shape }, "");
  if (line["type"] === "result" && line["error"])
    faults.push(...faultsOf(line["error"], ERROR, ""));
  return faults.map((fault) => `${kind}: ${fault}`);
}

function faultsOf(value: Record<string, any>, shape: Shape, path: string): string[] {
  const faults: string[] = [];
  const known = new Set<string>();
  for (const [name, types] of Object.entries(shape)) {
    const full = name.replace("?", "");
    if (path === "" ? full.includes(".") : !full.startsWith(path)) continue;
    const key = full.slice(path.length);
    if (key.includes(".")) continue;
    known.add(key);
    const found = typeOf(value[key]);
    if (found === "undefined" && name.endsWith("?")) continue;
    if (!types.split("|").includes(found)) faults.push(`${full} is ${found}, not ${types}`);
    const inner = `${full}.`;
    if (found === "object" && Object.keys(shape).some((other) => other.startsWith(inner)))
      faults.push(...faultsOf(value[key], shape, inner));
  }
  // Only where the table describes the inside completely are further keys a fault.
  if (path !== "event.") {
    for (const key of Object.keys(value)) if (!known.has(key)) faults.push(`${path}${key} is new`);
  }
  return faults;
}

function inside(path: string, shape: Shape): Shape {
  return Object.fromEntries(Object.entries(shape).map(([key, type]) => [`${path}.${key}`, type]));
}

function typeOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "array" : typeof value;
}

/** Looks at everything that a run needs, and says what is there, what is missing, and how to mend it. */

import { credentialStatus } from "./app-credentials.ts";
import { createKernelHost, createKernelParts, writableHome } from "./app-kernel.ts";
import { bindModel } from "./app-model.ts";
import { within, TIMED_OUT } from "./async.ts";
import { variable, type Config } from "./config.ts";
import { errorMessage, PrimeAgentError } from "./errors.ts";
import { checkAssets } from "./kernel/assets.ts";

const REACH_TIMEOUT_MS = 5_000;
const KERNEL_TIMEOUT_MS = 120_000;

/** One finding. `ok` false means that a run would not work; a warning is worth knowing. */
export interface Finding {
  name: string;
  state: "ok" | "warning" | "failed";
  detail: string;
  /** How to mend it. */
  hint?: string;
  /** Figures for machines. */
  data?: Record<string, unknown>;
}

/** Examines everything, in the order in which a run would need it. `onProgress` is told what takes time. */
export async function examine(
  config: Config,
  onProgress: (line: string) => void,
): Promise<Finding[]> {
  return [
    platformFinding(config),
    await embeddedFinding(),
    homeFinding(config),
    await kernelFinding(config, onProgress),
    ...(await modelFindings(config)),
    networkFinding(config),
  ];
}

function platformFinding(config: Config): Finding {
  const detail = `${process.platform} ${process.arch}, Bun ${Bun.version}, folder ${config.cwd}`;
  return { name: "program", state: "ok", detail };
}

async function embeddedFinding(): Promise<Finding> {
  const problems = await checkAssets();
  if (problems.length === 0) {
    return {
      name: "embedded files",
      state: "ok",
      detail: Bun.isStandaloneExecutable ? "complete" : "run from source",
    };
  }
  const hint = "The program is damaged: install it again.";
  return { name: "embedded files", state: "failed", detail: problems.join("; "), hint };
}

function homeFinding(config: Config): Finding {
  const { home } = config.environment;
  if (writableHome(config)) return { name: "home", state: "ok", detail: `${home} can be written` };
  const hint =
    "Sessions are not saved there; set PRIME_AGENT_HOME to a folder that can be written.";
  return { name: "home", state: "warning", detail: `${home} can't be written`, hint };
}

/** Boots a kernel and runs a cell in it. */
async function kernelFinding(config: Config, onProgress: (line: string) => void): Promise<Finding> {
  // The one cell is ours: there is no need to know which variables it must not see.
  const host = createKernelHost(config, []);
  let bootMs = 0;
  let versions = "";
  const { provisioner, tool } = createKernelParts(host, {
    handlers: {},
    skills: [],
    depth: 0,
    artifactsDir: () => undefined,
    chooseWhenBusy: async () => "cancel",
    onReady: (event) => {
      bootMs = event.bootMs;
      const { python = "", ipykernel = "", ipython = "" } = event.ready ?? {};
      versions = `Python ${python}, ipykernel ${ipykernel}, IPython ${ipython}`;
    },
  });
  try {
    const run = tool.run("import sys; print(sys.executable)", { onProgress });
    const result = await within(run, KERNEL_TIMEOUT_MS);
    if (result === TIMED_OUT)
      throw new PrimeAgentError("kernel_timeout", "the kernel did not answer in time");
    const python = result.details.stdout.trim();
    const detail = `${versions}, ready in ${bootMs} ms (${python})`;
    return { name: "kernel", state: "ok", detail, data: { boot_ms: bootMs, python } };
  } catch (error) {
    const hint = error instanceof PrimeAgentError ? error.hint : "";
    return { name: "kernel", state: "failed", detail: errorMessage(error), ...(hint && { hint }) };
  } finally {
    await provisioner.dispose();
    host.forkServers.dispose();
  }
}

async function modelFindings(config: Config): Promise<Finding[]> {
  const findings: Finding[] = [];
  try {
    findings.push(credentialFinding(config));
    const { model } = (await bindModel(config)).binding;
    const detail = `${model.provider}/${model.id} at ${model.baseUrl}`;
    findings.push({ name: "model", state: "ok", detail }, await reachFinding(model.baseUrl));
  } catch (error) {
    const hint = error instanceof PrimeAgentError ? error.hint : "";
    findings.push({
      name: "model",
      state: "failed",
      detail: errorMessage(error),
      ...(hint && { hint }),
    });
  }
  return findings;
}

function credentialFinding(config: Config): Finding {
  const keys = credentialStatus(config).flatMap(({ provider, source }) =>
    source ? [`${provider} (${source})`] : [],
  );
  const state = keys.length > 0 ? "ok" : "warning";
  return { name: "credentials", state, detail: keys.join(", ") || "none" };
}

/** Any HTTP answer means that the provider can be reached; no key is sent. */
async function reachFinding(baseUrl: string): Promise<Finding> {
  try {
    const response = await fetch(baseUrl, {
      method: "HEAD",
      signal: AbortSignal.timeout(REACH_TIMEOUT_MS),
    });
    return {
      name: "provider",
      state: "ok",
      detail: `${new URL(baseUrl).host} answers (HTTP ${response.status})`,
    };
  } catch (error) {
    const hint = "Check the network, HTTPS_PROXY and SSL_CERT_FILE.";
    return {
      name: "provider",
      state: "failed",
      detail: `${baseUrl}: ${errorMessage(error)}`,
      hint,
    };
  }
}

function networkFinding(config: Config): Finding {
  const names = ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"];
  const set = names.filter(
    (name) =>
      variable(config.environment, name) ?? variable(config.environment, name.toLowerCase()),
  );
  return { name: "network settings", state: "ok", detail: set.join(", ") || "none set" };
}

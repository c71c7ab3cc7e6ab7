/**
 * Answers what an agent's cells ask of the host (kernel/rlm/contract.json lists the requests). Payloads
 * are checked here; what is done about them is the business of the parts.
 */

import {
  HostRequestError,
  type HostHandler,
  type HostHandlers,
  type HostRequestContext,
} from "../kernel/host-bridge.ts";
import type { SessionContextKeeper } from "./context-keeper.ts";
import { ROLES, type FamilyMember } from "./family.ts";
import {
  budgetReport,
  MAX_OBJECTIVE_CHARS,
  remainingTokens,
  type Goal,
  type Goals,
} from "./goals.ts";
import { broadcast, listAgents, MAX_MESSAGE_CHARS, sendMessage } from "./messages.ts";
import { Payload } from "./payload.ts";
import { EVERYONE } from "./subagent-name.ts";
import type { Subagents } from "./subagents.ts";

/** A model that can be used now. */
export interface FoundModel {
  provider: string;
  id: string;
  name: string;
  selector: string;
}

/** Whom the handlers answer for, and what does the work. */
export interface HandlerParts {
  self: FamilyMember;
  subagents: Subagents;
  goals: Goals;
  /** Asked for only once there is one. */
  context(): SessionContextKeeper;
  /** Models that can be used now and match, best first. */
  findModels(query: string, limit: number): Promise<FoundModel[]>;
}

/** The handlers of one agent. Whose cells ask is settled by which kernel they are given to. */
export function createHostHandlers(parts: HandlerParts): HostHandlers {
  const handlers: Record<string, Answer> = {
    ...subagentHandlers(parts),
    ...messageHandlers(parts),
    ...goalHandlers(parts),
    ...compactHandlers(parts),
  };
  const named = Object.entries(handlers).map(([type, answer]): [string, HostHandler] => [
    type,
    (payload, context) => answer(new Payload(type, payload), context),
  ]);
  return Object.fromEntries(named);
}

type Answer = (payload: Payload, context: HostRequestContext) => Promise<object> | object;

const MAX_TASK_CHARS = 262_144;
const MAX_OPTION_CHARS = 200;
const MAX_INSTRUCTIONS_CHARS = 16_384;
const MAX_TOKEN_BUDGET = 1_000_000_000_000;
const MODELS_FOUND = { min: 1, max: 20 };
const DEFAULT_MODELS_FOUND = 8;

function subagentHandlers({ subagents, findModels }: HandlerParts): Record<string, Answer> {
  return {
    async "rlm.run"(payload, { signal }) {
      const options = payload.object("kwargs", ["name", "model", "thinking"]);
      const child = await subagents.spawn(
        {
          task: payload.text("prompt", MAX_TASK_CHARS),
          name: options.optionalText("name", MAX_OPTION_CHARS),
          model: options.optionalText("model", MAX_OPTION_CHARS),
          thinking: options.optionalText("thinking", MAX_OPTION_CHARS),
        },
        signal,
      );
      return {
        rlm_child_id: child.id,
        name: child.name,
        session_dir: child.session.artifactsDir ?? "",
        model: child.model,
      };
    },
    async "rlm.find_models"(payload) {
      const query = payload.optionalText("query", MAX_OPTION_CHARS) ?? "";
      const limit = payload.wholeNumber("limit", MODELS_FOUND, DEFAULT_MODELS_FOUND);
      return { models: await findModels(query, limit) };
    },
    "rlm.list_subagents": () => ({ subagents: subagents.list() }),
    "rlm.delete_subagent": (payload) => subagents.delete(payload.text("target", MAX_OPTION_CHARS)),
  };
}

function messageHandlers({ self }: HandlerParts): Record<string, Answer> {
  return {
    "agent_message.list_agents": () => listAgents(self),
    "agent_message.send"(payload) {
      const message = payload.text("message", MAX_MESSAGE_CHARS);
      if (payload.has("target")) {
        payload.choice("target", [EVERYONE]);
        if (payload.has("receiver_role") || payload.has("receiver_name")) {
          throw new HostRequestError(
            `A message to "${EVERYONE}" takes no receiver_role and no receiver_name.`,
          );
        }
        return { receipts: broadcast(self, message) };
      }
      const role = payload.choice("receiver_role", ROLES);
      const name = payload.optionalText("receiver_name", MAX_OPTION_CHARS)?.trim() || undefined;
      return sendMessage(self, { role, name }, message);
    },
  };
}

function goalHandlers({ goals }: HandlerParts): Record<string, Answer> {
  return {
    "goal.get": () => goalReply(goals.current()),
    "goal.create"(payload) {
      const objective = payload.text("objective", MAX_OBJECTIVE_CHARS);
      const bounds = { min: 1, max: MAX_TOKEN_BUDGET };
      return goalReply(
        goals.create(objective, payload.wholeNumber("token_budget", bounds, undefined)),
      );
    },
    "goal.complete": () => goalReply(goals.complete()),
  };
}

function goalReply(goal: Goal | undefined): object {
  return {
    goal: goal
      ? {
          objective: goal.objective,
          status: goal.status,
          token_budget: goal.tokenBudget ?? null,
          tokens_used: goal.tokensUsed,
          created_at: goal.createdAt,
        }
      : null,
    remaining_tokens: goal ? remainingTokens(goal) : null,
    completion_budget_report: goal?.status === "complete" ? budgetReport(goal) : null,
  };
}

function compactHandlers({ context }: HandlerParts): Record<string, Answer> {
  return {
    "compact.status"() {
      const { tokens, contextWindow, percent } = context().status();
      return { tokens, context_window: contextWindow, percent, scheduled: context().scheduled };
    },
    "compact.run"(payload) {
      const instructions = payload.optionalText("instructions", MAX_INSTRUCTIONS_CHARS)?.trim();
      return context().schedule(instructions || undefined)
        ? { scheduled: true }
        : { scheduled: false, reason: "one is scheduled already and comes after this turn" };
    },
  };
}

"""The public functions of Effect 4, by module, as of July 2026."""

from __future__ import annotations

NAMES: dict[str, str] = {
    "Stream": (
        "accumulate aggregate aggregateWithin bind bindEffect bindTo broadcast broadcastN "
        "buffer bufferArray callback catch catchCause catchCauseFilter catchCauseIf "
        "catchFilter catchIf catchReason catchReasons catchTag catchTags changes "
        "changesWith changesWithEffect chunks collect combine combineArray concat cross "
        "crossWith debounce decodeText die drain drainFork drop dropRight dropUntil "
        "dropUntilEffect dropWhile dropWhileEffect dropWhileFilter empty encodeText "
        "ensuring fail failCause failCauseSync failSync filter filterEffect filterMap "
        "filterMapEffect flatMap flatten flattenArray flattenEffect flattenIterable "
        "flattenTake forever fromArray fromArrayEffect fromArrays fromAsyncIterable "
        "fromChannel fromEffect fromEffectDrain fromEffectRepeat fromEffectSchedule "
        "fromEventListener fromIterable fromIterableEffect fromIterableEffectRepeat "
        "fromIteratorSucceed fromPubSub fromPubSubTake fromPull fromQueue "
        "fromReadableStream fromSchedule fromSubscription groupAdjacentBy groupBy "
        "groupByKey grouped groupedWithin haltWhen ignore ignoreCause interleave "
        "interleaveWith interruptWhen intersperse intersperseAffixes isStream iterate let "
        "make map mapAccum mapAccumArray mapAccumArrayEffect mapAccumEffect mapArray "
        "mapArrayEffect mapBoth mapEffect mapError merge mergeAll mergeEffect mergeLeft "
        "mergeResult mergeRight mkString mkUint8Array never onEnd onError onExit onFirst "
        "onStart orDie orElseIfEmpty orElseSucceed paginate partition partitionEffect "
        "partitionQueue peel pipeThrough pipeThroughChannel pipeThroughChannelOrFail "
        "prepend provide provideContext provideService provideServiceEffect race raceAll "
        "range rechunk repeat repeatElements result retry run runCollect runCount "
        "runDrain runFold runFoldEffect runForEach runForEachArray runForEachWhile "
        "runHead runIntoPubSub runIntoQueue runLast runSum scan scanEffect schedule "
        "scoped service serviceOption share sliding slidingSize split splitLines succeed "
        "suspend switchMap sync take takeRight takeUntil takeUntilEffect takeWhile "
        "takeWhileEffect takeWhileFilter tap tapBoth tapCause tapError tapSink throttle "
        "throttleEffect tick timeout timeoutOrElse toAsyncIterable toAsyncIterableEffect "
        "toAsyncIterableWith toChannel toPubSub toPubSubTake toPull toQueue "
        "toReadableStream toReadableStreamEffect toReadableStreamWith transduce "
        "transformPull transformPullBracket unfold unwrap updateContext updateService "
        "when withExecutionPlan withSpan zip zipFlatten zipLatest zipLatestAll "
        "zipLatestWith zipLeft zipRight zipWith zipWithArray zipWithIndex zipWithNext "
        "zipWithPrevious zipWithPreviousAndNext"
    ),
    "Schedule": (
        "addDelay andThen andThenResult cron duration during exponential fibonacci fixed "
        "forever fromStep fromStepWithMetadata identity isSchedule jittered map max min "
        "modifyDelay passthrough recurs setInputType spaced tap toStep toStepWithMetadata "
        "toStepWithSleep upTo while windowed"
    ),
    "Scope": (
        "addFinalizer addFinalizerExit close closeUnsafe fork forkUnsafe make makeUnsafe "
        "provide use"
    ),
    "Layer": (
        "build buildWithMemoMap buildWithScope catch catchCause catchTag effect "
        "effectContext effectDiscard empty flatMap forkMemoMap forkMemoMapUnsafe fresh "
        "fromBuild fromBuildMemo isLayer launch makeMemoMap makeMemoMapUnsafe merge "
        "mergeAll mock orDie parentSpan provide provideMerge satisfiesErrorType "
        "satisfiesServicesType satisfiesSuccessType span succeed succeedContext suspend "
        "sync syncContext tap tapCause tapError unwrap updateService withParentSpan "
        "withSpan"
    ),
    "Ref": (
        "get getAndSet getAndUpdate getAndUpdateSome getUnsafe make makeUnsafe modify "
        "modifySome set setAndGet update updateAndGet updateSome updateSomeAndGet"
    ),
    "SubscriptionRef": (
        "changes get getAndSet getAndUpdate getAndUpdateEffect getAndUpdateSome "
        "getAndUpdateSomeEffect getUnsafe isSubscriptionRef make modify modifyEffect "
        "modifySome modifySomeEffect set setAndGet update updateAndGet updateAndGetEffect "
        "updateEffect updateSome updateSomeAndGet updateSomeAndGetEffect updateSomeEffect"
    ),
    "SynchronizedRef": (
        "get getAndSet getAndUpdate getAndUpdateEffect getAndUpdateSome "
        "getAndUpdateSomeEffect getUnsafe make makeUnsafe modify modifyEffect modifySome "
        "modifySomeEffect set setAndGet update updateAndGet updateAndGetEffect "
        "updateEffect updateSome updateSomeAndGet updateSomeAndGetEffect updateSomeEffect"
    ),
    "Deferred": (
        "await complete completeWith die dieSync done doneUnsafe fail failCause "
        "failCauseSync failSync interrupt interruptWith into isDeferred isDone "
        "isDoneUnsafe make makeUnsafe poll succeed sync"
    ),
    "Cause": (
        "annotate annotations combine die done empty fail filterInterruptors findDefect "
        "findDie findError findErrorOption findFail findInterrupt fromReasons hasDies "
        "hasFails hasInterrupts hasInterruptsOnly interrupt interruptors "
        "isAsyncFiberError isCause isDieReason isDone isExceededCapacityError "
        "isFailReason isIllegalArgumentError isInterruptReason isNoSuchElementError "
        "isReason isTimeoutError isUnknownError makeDieReason makeFailReason "
        "makeInterruptReason map pretty prettyErrors reasonAnnotations squash"
    ),
    "Exit": (
        "asVoid asVoidAll die fail failCause filterCause filterFailure filterSuccess "
        "filterValue findDefect findError findErrorOption getCause getSuccess hasDies "
        "hasFails hasInterrupts interrupt isExit isFailure isSuccess map mapBoth mapError "
        "match succeed void"
    ),
    "TestClock": ("adjust layer make setTime testClockWith withLive"),
}

